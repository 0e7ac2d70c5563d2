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
Tesla K80                    3.7  13   875  384  2505   4.37   240     875
GeForce GTX 770              3.0   8  1085  256  3505   3.33   224    1254
GeForce GTX 780 Ti           3.5  15   928  384  3500   5.35   336    1150
GeForce GT 710               3.5   1   954   64   900   0.366   14.4   954
GeForce GT 730               3.5   2   902   64  2500   0.693   40     902
GeForce GTX 750 Ti           5.0   5  1085  128  2700   1.39    86.4  1294
GeForce GTX 950              5.2   6  1188  128  3305   1.83   105.8  1405
GeForce GTX 960              5.2   8  1178  128  3505   2.41   112.2  1531
GeForce GTX 970              5.2  13  1178  256  3505   3.92   224.4  1531
GeForce GTX 980              5.2  16  1216  256  3505   4.98   224.4  1392
GeForce GTX 980 Ti           5.2  22  1075  384  3505   6.06   336.6  1392
GeForce GTX TITAN X          5.2  24  1089  384  3505   6.69   336.6  1392
Tesla M40                    5.2  24  1112  384  3004   6.83   288    1114
Tesla M60                    5.2  16  1178  256  2505   4.83   160    1177
Quadro M2000                 5.2   6  1163  128  3305   1.79   105.8  1163
Tegra X1                     5.3   2   998   64  1600   0.511   25.6   998
GeForce GT 1030              6.1   3  1468   64  3004   1.13    48.1  1911
GeForce GTX 1050             6.1   5  1455  128  3504   1.86   112.1  1911
GeForce GTX 1050 Ti          6.1   6  1392  128  3504   2.14   112.1  1911
GeForce GTX 1060 3GB         6.1   9  1708  192  4004   3.94   192.2  1911
GeForce GTX 1060 6GB         6.1  10  1708  192  4004   4.37   192.2  1911
GeForce GTX 1070             6.1  15  1683  256  4004   6.46   256.3  1911
GeForce GTX 1070 Ti          6.1  19  1683  256  4004   8.19   256.3  1911
GeForce GTX 1080             6.1  20  1733  256  5005   8.87   320.3  1911
GeForce GTX 1080 Ti          6.1  28  1582  352  5505  11.34   484.4  1911
TITAN X (Pascal)             6.1  28  1531  384  5005  10.97   480.4  1911
TITAN Xp                     6.1  30  1582  384  5705  12.15   547.7  1911
Tesla P4                     6.1  20  1114  256  3003   5.70   192.2  1531
Tesla P40                    6.1  30  1531  384  3615  11.76   347.1  1531
Tesla P100-PCIE-16GB         6.0  56  1329 4096   715   9.53   732    1329
Tesla P100-SXM2-16GB         6.0  56  1480 4096   715  10.6    732    1480
Quadro P400                  6.1   2  1252   64  2005   0.641   32.1  1252
Quadro P1000                 6.1   5  1480  128  2505   1.894   80.2  1519
Quadro P2000                 6.1   8  1480  160  3504   3.03   140.2  1721
Quadro P4000                 6.1  14  1480  256  3802   5.30   243.3  1708
Quadro P5000                 6.1  20  1733  256  4513   8.87   288.8  1733
Jetson TX2                   6.2   2  1300  128  1866   0.666   59.7  1300
Tesla V100-PCIE-16GB         7.0  80  1380 4096   877  14.13   898    1380
Tesla V100-SXM2-16GB         7.0  80  1530 4096   877  15.67   898    1530
TITAN V                      7.0  80  1455 3072   850  14.9    652.8  1912
Xavier                       7.2   8  1377  256  2133   1.41   136.5  1377
GeForce GTX 1630             7.5   8  1785   64  6001   1.83    96    2145
GeForce GTX 1650             7.5  14  1665  128  4001   2.98   128    2130
GeForce GTX 1650 SUPER       7.5  20  1725  128  6001   4.42   192    2130
GeForce GTX 1660             7.5  22  1785  192  4001   5.03   192    2130
GeForce GTX 1660 SUPER       7.5  22  1785  192  7001   5.03   336    2130
GeForce GTX 1660 Ti          7.5  24  1770  192  6001   5.44   288    2130
GeForce RTX 2060             7.5  30  1680  192  7001   6.45   336    2100
GeForce RTX 2060 SUPER       7.5  34  1650  256  7001   7.18   448    2100
GeForce RTX 2070             7.5  36  1620  256  7001   7.46   448    2100
GeForce RTX 2070 SUPER       7.5  40  1770  256  7001   9.06   448    2100
GeForce RTX 2080             7.5  46  1710  256  7001  10.07   448    2100
GeForce RTX 2080 SUPER       7.5  48  1815  256  7751  11.15   496    2100
GeForce RTX 2080 Ti          7.5  68  1545  352  7001  13.45   616    2100
TITAN RTX                    7.5  72  1770  384  7001  16.31   672    2100
Tesla T4                     7.5  40  1590  256  5001   8.14   320    1590
T400                         7.5   6  1425   64  5001   1.09    80    2100
T1000                        7.5  14  1395  128  5001   2.50   160    2100
Quadro RTX 4000              7.5  36  1545  256  6501   7.12   416    2100
Quadro RTX 5000              7.5  48  1815  256  7001  11.15   448    2100
Quadro RTX 6000              7.5  72  1770  384  7001  16.31   672    2100
GeForce MX450                7.5  14  1575   64  5001   2.82    80    2100
GeForce RTX 3050             8.6  20  1777  128  7001   9.1    224    2100
GeForce RTX 3060             8.6  28  1777  192  7501  12.74   360    2100
GeForce RTX 3060 Ti          8.6  38  1665  256  7001  16.2    448    2100
GeForce RTX 3070             8.6  46  1725  256  7001  20.31   448    2100
GeForce RTX 3070 Ti          8.6  48  1770  256  9501  21.75   608.3  2100
GeForce RTX 3080             8.6  68  1710  320  9501  29.77   760.3  2100
GeForce RTX 3080 Ti          8.6  80  1665  384  9501  34.1    912.4  2100
GeForce RTX 3090             8.6  82  1695  384  9751  35.58   936.2  2100
GeForce RTX 3090 Ti          8.6  84  1860  384 10501  40.0   1008    2130
GeForce RTX 3060 Laptop GPU  8.6  30  1425  192  7001  10.94   336    2100
NVIDIA A100-PCIE-40GB        8.0 108  1410 5120  1215  19.49  1555    1410
NVIDIA A100-SXM4-80GB        8.0 108  1410 5120  1593  19.49  2039    1410
NVIDIA A30                   8.0  56  1440 3072  1215  10.32   933    1440
NVIDIA A40                   8.6  84  1740  384  7251  37.42   696    1740
NVIDIA A10                   8.6  72  1695  384  6251  31.24   600    1695
NVIDIA A16                   8.6  10  1755  128  6251   4.49   200    1755
NVIDIA A2                    8.6  10  1770  128  6251   4.53   200    1770
NVIDIA RTX A2000             8.6  26  1200  192  6001   7.99   288    2100
NVIDIA RTX A4000             8.6  48  1560  256  7001  19.17   448    2100
NVIDIA RTX A4500             8.6  56  1650  320  8001  23.65   640    2100
NVIDIA RTX A5000             8.6  64  1695  384  8001  27.77   768    2100
NVIDIA RTX A6000             8.6  84  1800  384  8001  38.71   768    2100
Orin                         8.7  16  1300  256  3200   5.32   204.8  1300
GeForce RTX 4050 Laptop GPU  8.9  20  1605   96  8001   8.2    192    3105
GeForce RTX 4060             8.9  24  2460  128  8501  15.11   272    3105
GeForce RTX 4060 Ti          8.9  34  2535  128  9001  22.06   288    3105
GeForce RTX 4070             8.9  46  2475  192 10501  29.15   504    3105
GeForce RTX 4070 SUPER       8.9  56  2475  192 10501  35.48   504    3105
GeForce RTX 4070 Ti          8.9  60  2610  192 10501  40.09   504    3105
GeForce RTX 4070 Ti SUPER    8.9  66  2610  256 10501  44.1    672    3105
GeForce RTX 4080             8.9  76  2505  256 11201  48.74   716.8  3105
GeForce RTX 4080 SUPER       8.9  80  2550  256 11501  52.22   736    3105
GeForce RTX 4090             8.9 128  2520  384 10501  82.58  1008    3105
GeForce RTX 4090 D           8.9 114  2520  384 10501  73.54  1008    3105
NVIDIA L4                    8.9  58  2040  192  6251  30.3    300    2040
NVIDIA L40                   8.9 142  2490  384  9001  90.5    864    2490
NVIDIA L40S                  8.9 142  2520  384  9001  91.6    864    2520
NVIDIA RTX 2000 Ada          8.9  22  2130  128  8001  12.0    256    3105
NVIDIA RTX 4000 Ada          8.9  48  2175  160  9001  26.7    360    3105
NVIDIA RTX 4500 Ada          8.9  60  2580  192  9001  39.6    432    3105
NVIDIA RTX 5000 Ada          8.9 100  2550  256  9001  65.3    576    3105
NVIDIA RTX 6000 Ada          8.9 142  2505  384 10001  91.1    960    3105
NVIDIA H100 PCIe             9.0 114  1755 5120  1593  51.2   2039    1755
NVIDIA H100 80GB HBM3        9.0 132  1980 5120  2619  66.9   3352    1980
GeForce RTX 5050             12.0  20  2572  128 10001  13.17  320    3090
GeForce RTX 5060             12.0  30  2497  128 14001  19.18  448    3090
GeForce RTX 5060 Ti          12.0  36  2572  128 14001  23.7   448    3090
GeForce RTX 5070             12.0  48  2512  192 14001  30.87  672    3090
GeForce RTX 5070 Ti          12.0  70  2452  256 14001  43.94  896    3090
GeForce RTX 5080             12.0  84  2617  256 15001  56.28  960    3090
GeForce RTX 5090             12.0 170  2407  512 14001 104.8  1792    3090
NVIDIA RTX PRO 6000          12.0 188  2617  512 14001 126    1792    3090
"""


def _card(line: str) -> PublishedCard:
    name, rest = line[:29].strip(), line[29:].split()
    capability, numbers = rest[0], [float(number) for number in rest[1:]]
    sms, boost, bus, memory, tflops, gb_per_s, highest = numbers
    return PublishedCard(
        name, capability, int(sms), boost, int(bus), memory, tflops, gb_per_s, highest
    )


CARDS = [_card(line) for line in _TABLE.strip().splitlines()]
