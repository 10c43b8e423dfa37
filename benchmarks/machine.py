"""One line that names the machine a table was made on."""

from __future__ import annotations

import os
import platform


def machine_line(gpu: bool = False) -> str:
    """CPU model, cores and Python; with ``gpu`` the current CUDA device and the driver's CUDA version too."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            names = [line.partition(":")[2].strip() for line in info if line.startswith("model name")]
        model = names[0] if names else model
    except OSError:
        pass
    text = f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"
    if gpu:
        from ptxdsl.cuda.driver import current_driver

        driver = current_driver()
        device = driver.context(None)[1]
        text += f"; {device.name}, driver for CUDA {driver.version() // 1000}.{driver.version() % 1000 // 10}"
    return text


def print_table(head: list[str], rows: list[list[str]]) -> None:
    """Columns as wide as their widest entry; the first left-aligned, the others right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: list[str]) -> str:
        return "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()

    print(line(head))
    print(line(["-" * width for width in widths]))
    for row in rows:
        print(line(row))
