"""Published figures of cards, held against what the program calculates and calls normal.

From the makers' data sheets and white papers: multiprocessors, boost clock, memory bus, and what is
stated of them, TFLOPS in float32 and GB/s. The memory clock is half the data rate, as drivers
report it. The highest clock that a driver reports is above the boost clock of most home cards
(1911 MHz in Pascal, 2100 in Turing and Ampere, 3105 in Ada, 3090 in Blackwell).
"""

from typing import NamedTuple


class PublishedCard(NamedTuple):
    name: str
    compute_capability: str
    multiprocessors: int
    boost_mhz: float
    bus_bits: int
    memory_mhz: float
    tflops: float
    gb_per_s: float
    highest_mhz: float


_TABLE = """
Tesla K40m                   3.5  15   875  384  3004   5.04   288     875
GeForce GTX 770              3.0   8  1085  256  3505   3.33   224    1254
GeForce GT 710               3.5   1   954   64   900   0.366   14.4   954
GeForce GTX 750 Ti           5.0   5  1085  128  2700   1.39    86.4  1294
GeForce GTX 970              5.2  13  1178  256  3505   3.92   224.4  1531
GeForce GTX 980 Ti           5.2  22  1075  384  3505   6.06   336.6  1392
Tesla M40                    5.2  24  1112  384  3004   6.83   288    1114
Tegra X1                     5.3   2   998   64  1600   0.511   25.6   998
GeForce GT 1030              6.1   3  1468   64  3004   1.13    48.1  1911
GeForce GTX 1050 Ti          6.1   6  1392  128  3504   2.14   112.1  1911
GeForce GTX 1060 6GB         6.1  10  1708  192  4004   4.37   192.2  1911
GeForce GTX 1080 Ti          6.1  28  1582  352  5505  11.34   484.4  1911
Tesla P4                     6.1  20  1114  256  3003   5.70   192.2  1531
Tesla P40                    6.1  30  1531  384  3615  11.76   347.1  1531
Tesla P100-PCIE-16GB         6.0  56  1329 4096   715   9.53   732    1329
Tesla P100-SXM2-16GB         6.0  56  1480 4096   715  10.6    732    1480
Quadro P1000                 6.1   5  1480  128  2505   1.894   80.2  1519
Jetson TX2                   6.2   2  1300  128  1866   0.666   59.7  1300
Tesla V100-SXM2-16GB         7.0  80  1530 4096   877  15.67   898    1530
TITAN V                      7.0  80  1455 3072   850  14.9    652.8  1912
Xavier                       7.2   8  1377  256  2133   1.41   136.5  1377
GeForce GTX 1650             7.5  14  1665  128  4001   2.98   128    2130
GeForce GTX 1660 Ti          7.5  24  1770  192  6001   5.44   288    2130
GeForce RTX 2060             7.5  30  1680  192  7001   6.45   336    2100
GeForce RTX 2080 Ti          7.5  68  1545  352  7001  13.45   616    2100
Tesla T4                     7.5  40  1590  256  5001   8.14   320    1590
T400                         7.5   6  1425   64  5001   1.09    80    2100
GeForce MX450                7.5  14  1575   64  5001   2.82    80    2100
GeForce RTX 3060             8.6  28  1777  192  7501  12.74   360    2100
GeForce RTX 3080             8.6  68  1710  320  9501  29.77   760.3  2100
GeForce RTX 3060 Laptop GPU  8.6  30  1425  192  7001  10.94   336    2100
NVIDIA A100-PCIE-40GB        8.0 108  1410 5120  1215  19.49  1555    1410
NVIDIA A30                   8.0  56  1440 3072  1215  10.32   933    1440
NVIDIA A2                    8.6  10  1770  128  6251   4.53   200    1770
NVIDIA RTX A2000             8.6  26  1200  192  6001   7.99   288    2100
Orin                         8.7  16  1300  256  3200   5.32   204.8  1300
GeForce RTX 4060             8.9  24  2460  128  8501  15.11   272    3105
GeForce RTX 4090             8.9 128  2520  384 10501  82.58  1008    3105
NVIDIA L4                    8.9  58  2040  192  6251  30.3    300    2040
NVIDIA L40S                  8.9 142  2520  384  9001  91.6    864    2520
NVIDIA RTX 2000 Ada          8.9  22  2130  128  8001  12.0    256    3105
NVIDIA H100 PCIe             9.0 114  1755 5120  1593  51.2   2039    1755
NVIDIA H100 80GB HBM3        9.0 132  1980 5120  2619  66.9   3352    1980
GeForce RTX 5060             12.0  30  2497  128 14001  19.18  448    3090
GeForce RTX 5090             12.0 170  2407  512 14001 104.8  1792    3090
"""


def _card(line: str) -> PublishedCard:
    name, rest = line[:29].strip(), line[29:].split()
    capability, numbers = rest[0], [float(number) for number in rest[1:]]
    sms, boost, bus, memory, tflops, gb_per_s, highest = numbers
    return PublishedCard(
        name, capability, int(sms), boost, int(bus), memory, tflops, gb_per_s, highest
    )


CARDS = [_card(line) for line in _TABLE.strip().splitlines()]
