"""A cluster on this machine: a head that runs no stages, and two nodes. Always shut down."""

import pytest
import ray
from ray.cluster_utils import Cluster

from stages.runtime.placement import Placement, RayCluster

NODE_CPUS = 4


@pytest.fixture(scope="session")
def cluster():
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=NODE_CPUS)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture
def placed(cluster, request):
    """Makes the placement of a test's stages. Each test has a namespace of its own."""
    return lambda replicas=1: placement(cluster, request.node.name, replicas)


def placement(cluster, namespace, replicas=1):
    where = RayCluster(cluster.address, namespace)
    return Placement(executor="ray", replicas=replicas, cpus=0.1, ray=where)
