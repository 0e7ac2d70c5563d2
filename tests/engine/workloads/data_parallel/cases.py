"""The workload, and what is asked of it."""

import torch

from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.data_parallel import DataParallel

CPU = torch.device("cpu")

WORKLOAD = DataParallel()

PROCESSES = "DistributedDataParallel"


def case_of(size: int = 16, device: torch.device = CPU, **options: str) -> Case:
    return make_case(WORKLOAD.description, device, size, options=options)
