"""Where a model is run, and in which type of number."""

import torch


def choose_device(wanted: str) -> torch.device:
    """Return the device for `NESCIO_MODEL_DEVICE`; "auto" takes CUDA where there is one."""
    if wanted != "auto":
        return torch.device(wanted)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def choose_dtype(device: torch.device) -> torch.dtype:
    """Return bfloat16 where the hardware computes in it, else float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    if device.type != "cpu":
        return torch.float32
    able = torch.cpu.get_capabilities()
    in_hardware = able.get("avx512_bf16", False) or able.get("amx_bf16", False)
    return torch.bfloat16 if in_hardware else torch.float32
