"""The files that run the image (Compose, Kubernetes, Ray) are valid, and fit the server."""

import json
import re
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from server.config.settings import FIELDS, Settings
from server.config.sources import variable_of
from server.serve import CLEANUP_S

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
OBJECTS = {
    found["kind"]: found
    for found in yaml.safe_load_all((ROOT / "docs" / "kubernetes.yaml").read_text())
}
POD = OBJECTS["Deployment"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
SCALING = (ROOT / "docs" / "scaling.md").read_text()
RAY_OBJECTS = {
    found["kind"]: found
    for found in yaml.safe_load_all(re.search(r"```yaml\n(.*?)```", SCALING, re.DOTALL)[1])
}
RAY_COMPOSE = yaml.safe_load((ROOT / "docker" / "compose.ray.yaml").read_text())
VARIABLES = {variable_of(name) for name in FIELDS}


@pytest.mark.parametrize("kind", OBJECTS)
def test_kubernetes_manifests_are_valid(kind):
    version = ".".join(kubernetes_validate.latest_version().split(".")[:2])
    assert kubernetes_validate.validate(OBJECTS[kind], version, strict=True)


def pods_of(cluster):
    spec = cluster["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": {}, **group["template"]}


def test_manifests_of_the_ray_cluster_are_valid():
    version = ".".join(kubernetes_validate.latest_version().split(".")[:2])
    objects = [RAY_OBJECTS["Deployment"], RAY_OBJECTS["Service"]]
    for each in (*objects, *pods_of(RAY_OBJECTS["RayCluster"])):
        assert kubernetes_validate.validate(each, version, strict=True)


def test_the_pods_of_a_ray_cluster_have_probes_of_their_own():
    for pod in pods_of(RAY_OBJECTS["RayCluster"]):
        (container,) = pod["spec"]["containers"]
        assert {"readinessProbe", "livenessProbe"} <= set(container)


def test_only_the_server_has_a_health_check():
    for name, service in RAY_COMPOSE["services"].items():
        assert ("healthcheck" in service) == (name != "server")


def test_an_invalid_manifest_is_found():
    wrong = {**OBJECTS["Service"], "spec": {**OBJECTS["Service"]["spec"], "prots": []}}
    with pytest.raises(kubernetes_validate.ValidationError, match="prots"):
        kubernetes_validate.validate(wrong, "1.37", strict=True)


def test_probes_use_paths_that_the_server_has():
    served = json.loads((ROOT / "openapi" / "openapi.json").read_text())["paths"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert CONTAINER[probe]["httpGet"]["path"] in served
    labels = OBJECTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert OBJECTS["Service"]["spec"]["selector"] == labels


def test_kubernetes_lets_streams_finish():
    given = {variable["name"]: variable.get("value") for variable in CONTAINER["env"]}
    before_s = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    running_s = float(given["NANO_OMNI_SHUTDOWN_S"])
    assert POD["terminationGracePeriodSeconds"] >= before_s + running_s + CLEANUP_S


def test_compose_lets_streams_finish():
    for name in ("cpu", "cuda"):
        seconds = int(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s"))
        assert seconds >= Settings.model_fields["shutdown_s"].default + CLEANUP_S


def own(names):
    """The variables that are not Ray's."""
    return {name for name in names if not name.startswith("RAY_")}


def test_only_existing_settings_are_given():
    compose = {name for one in ("cpu", "cuda") for name in COMPOSE["services"][one]["environment"]}
    compose |= own(RAY_COMPOSE["services"]["server"]["environment"])
    (server,) = RAY_OBJECTS["Deployment"]["spec"]["template"]["spec"]["containers"]
    kubernetes = {variable["name"] for variable in CONTAINER["env"]}
    kubernetes |= own(variable["name"] for variable in server["env"])
    image = set(re.findall(r"\bNANO_OMNI_[A-Z_]+(?==)", DOCKERFILE))
    assert all((compose, kubernetes, image))
    assert compose | kubernetes | image <= VARIABLES


def test_the_image_has_the_python_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (version,) = re.findall(r"PYTHON_IMAGE=python:(\d+\.\d+)", DOCKERFILE)
    assert project["requires-python"] == f">={version}"


def test_every_file_that_compose_mounts_exists():
    for service in COMPOSE["services"].values():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / "docker" / source).is_file()
