"""Credit for tests that call a stage themselves."""

from stages.contract.stage import Credit

CREDIT = Credit(client=8, next=8)
