/* NVML's readings of a card: each is a number of the configuration, and not supported without one.
 *
 * The value "auto" makes a reading follow what CUDA does on the card: busy or idle.
 */
#include "nvml.h"

#include <pthread.h>
#include <string.h>

static int number(const Card *card, const char *key, uint64_t *value) {
    if (!soft_has(card, key)) {
        return NVML_NOT_SUPPORTED;
    }
    *value = soft_number(card, key, 0);
    return NVML_SUCCESS;
}

static int following(Device device, const Card *card, const char *key, uint64_t busy, uint64_t idle,
                     uint64_t *value) {
    if (soft_is_auto(card, key)) {
        *value = soft_is_busy(nvml_card_index(device)) ? busy : idle;
        return NVML_SUCCESS;
    }
    return number(card, key, value);
}

/* Heat, of cards with temperature_c = auto: on its way to load_c while the card is busy, else to
 * ambient_c, each time by 1 - 1/e of the rest in tau_s. At throttle_c, it stays there and the card
 * brakes. Each process has its own, from ambient_c on, moved on by each reading of any sensor. */
typedef struct {
    double celsius;
    uint64_t at_ns;
} Heat;

static double heat_of(int index, const Card *card) {
    static Heat heat[SOFT_CARDS];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    Heat *now = &heat[index];
    uint64_t at_ns = soft_now();
    double ambient = (double)soft_number(card, "ambient_c", 35);
    double limit = (double)soft_number(card, "throttle_c", 150);
    double tau = (double)soft_number(card, "tau_s", 60);
    if (now->at_ns == 0) {
        *now = (Heat){ambient, at_ns};
    }
    double target = soft_is_busy(index) ? (double)soft_number(card, "load_c", 80) : ambient;
    double seconds = (double)(at_ns - now->at_ns) / 1e9;
    double celsius = now->celsius + (target - now->celsius) * seconds / (tau + seconds);
    *now = (Heat){celsius < limit ? celsius : limit, at_ns};
    celsius = now->celsius;
    pthread_mutex_unlock(&lock);
    return celsius;
}

static bool brakes(int index, const Card *card) {
    return soft_is_auto(card, "temperature_c") && soft_has(card, "throttle_c") &&
           heat_of(index, card) >= (double)soft_number(card, "throttle_c", 150);
}

static int celsius_of(Device device, const Card *card, uint64_t *celsius) {
    if (soft_is_auto(card, "temperature_c")) {
        *celsius = (uint64_t)heat_of(nvml_card_index(device), card);
        return NVML_SUCCESS;
    }
    return number(card, "temperature_c", celsius);
}

#define NUMBER(function, type, key)                                                                \
    int function(Device device, type *value) {                                                     \
        ENTER_CARD(device);                                                                        \
        uint64_t read = 0;                                                                         \
        int code = number(card, key, &read);                                                       \
        *value = (type)read;                                                                       \
        return code;                                                                               \
    }

NUMBER(nvmlDeviceGetFanSpeed, unsigned, "fan_percent")
NUMBER(nvmlDeviceGetNumFans, unsigned, "fans")
NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power_mw")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_limit_mw")
NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, "power_limit_mw")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, "power_limit_mw")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, "energy_mj")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "max_pcie_gen")
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, "max_pcie_gen")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "max_pcie_width")
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, "pcie_replays")
NUMBER(nvmlDeviceGetNumGpuCores, unsigned, "cores")
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned, "bus_width_bits")
NUMBER(nvmlDeviceGetDisplayActive, unsigned, "display_active")
NUMBER(nvmlDeviceGetDisplayMode, unsigned, "display_active")
NUMBER(nvmlDeviceGetComputeMode, unsigned, "compute_mode")
NUMBER(nvmlDeviceGetPersistenceMode, unsigned, "persistence_mode")
NUMBER(nvmlDeviceGetBrand, unsigned, "brand")
NUMBER(nvmlDeviceGetArchitecture, unsigned, "architecture")
NUMBER(nvmlDeviceGetMinorNumber, unsigned, "minor_number")
NUMBER(nvmlDeviceGetIrqNum, unsigned, "irq")

int nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned *generation) {
    ENTER_CARD(device);
    uint64_t read = 0;
    int code = following(device, card, "pcie_gen", soft_number(card, "max_pcie_gen", 1), 1, &read);
    *generation = (unsigned)read;
    return code;
}

int nvmlDeviceGetFanSpeed_v2(Device device, unsigned fan, unsigned *speed) {
    ENTER_CARD(device);
    uint64_t read = 0;
    int code = fan < soft_number(card, "fans", 1) ? number(card, "fan_percent", &read)
                                                  : NVML_INVALID_ARGUMENT;
    *speed = (unsigned)read;
    return code;
}

int nvmlDeviceGetTemperature(Device device, int sensor, unsigned *celsius) {
    ENTER_CARD(device);
    uint64_t read = 0;
    int code = celsius_of(device, card, &read);
    *celsius = (unsigned)read;
    return code;
}

typedef struct {
    unsigned version;
    int sensor;
    int celsius;
} Temperature;

int nvmlDeviceGetTemperatureV(Device device, Temperature *temperature) {
    ENTER_CARD(device);
    uint64_t read = 0;
    int code = celsius_of(device, card, &read);
    temperature->celsius = (int)read;
    return code;
}

int nvmlDeviceGetTemperatureThreshold(Device device, int threshold, unsigned *celsius) {
    static const char *const key[] = {"shutdown_c", "slowdown_c", "memory_max_c", "gpu_max_c"};
    ENTER_CARD(device);
    uint64_t read = 0;
    int code = threshold >= 0 && threshold < 4 ? number(card, key[threshold], &read)
                                               : NVML_NOT_SUPPORTED;
    *celsius = (unsigned)read;
    return code;
}

typedef struct {
    unsigned gpu;
    unsigned memory;
} Utilization;

int nvmlDeviceGetUtilizationRates(Device device, Utilization *rates) {
    ENTER_CARD(device);
    uint64_t gpu = 0;
    uint64_t memory = 0;
    int code = following(device, card, "gpu_percent", 100, 0, &gpu);
    if (code == NVML_SUCCESS) {
        code = following(device, card, "memory_percent", 100, 0, &memory);
    }
    *rates = (Utilization){(unsigned)gpu, (unsigned)memory};
    return code;
}

int nvmlDeviceGetPerformanceState(Device device, unsigned *state) {
    ENTER_CARD(device);
    uint64_t read = 0;
    int code = following(device, card, "pstate", 0, 8, &read);
    *state = (unsigned)read;
    return code;
}

int nvmlDeviceGetPowerState(Device device, unsigned *state) {
    return nvmlDeviceGetPerformanceState(device, state);
}

int nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long *reasons) {
    ENTER_CARD(device);
    uint64_t read = 0;
    const uint64_t gpu_idle = 1;
    const uint64_t driver_heat = 0x20;
    uint64_t busy = brakes(nvml_card_index(device), card) ? driver_heat : 0;
    int code = following(device, card, "event_reasons", busy, gpu_idle, &read);
    *reasons = read;
    return code;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

int nvmlDeviceGetSupportedClocksEventReasons(Device device, unsigned long long *reasons) {
    ENTER_CARD(device);
    *reasons = 0x1ff;
    return soft_has(card, "event_reasons") ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

/* Clock domains: 0 graphics, 1 SM, 2 memory, 3 video. */
enum { DOMAIN_MEMORY = 2, DOMAIN_VIDEO = 3 };

static int max_clock(const Card *card, int domain, uint64_t *mhz) {
    return number(card, domain == DOMAIN_MEMORY ? "max_memory_mhz" : "max_sm_mhz", mhz);
}

int nvmlDeviceGetMaxClockInfo(Device device, int domain, unsigned *mhz) {
    ENTER_CARD(device);
    uint64_t read = 0;
    int code = max_clock(card, domain, &read);
    *mhz = (unsigned)read;
    return code;
}

int nvmlDeviceGetClockInfo(Device device, int domain, unsigned *mhz) {
    ENTER_CARD(device);
    uint64_t top = 0;
    uint64_t read = 0;
    max_clock(card, domain, &top);
    int code = domain == DOMAIN_MEMORY
                   ? following(device, card, "memory_mhz", top,
                               soft_number(card, "idle_memory_mhz", 0), &read)
                   : following(device, card, "sm_mhz",
                               brakes(nvml_card_index(device), card) ? top / 2 : top,
                               soft_number(card, "idle_sm_mhz", 0), &read);
    *mhz = (unsigned)read;
    return code;
}

int nvmlDeviceGetPcieThroughput(Device device, int counter, unsigned *kb_s) {
    ENTER_CARD(device);
    uint64_t read = 0;
    int code = number(card, counter == 0 ? "pcie_tx_kb_s" : "pcie_rx_kb_s", &read);
    *kb_s = (unsigned)read;
    return code;
}

static int mode_pair(const Card *card, const char *key, unsigned *current, unsigned *pending) {
    uint64_t read = 0;
    int code = number(card, key, &read);
    *current = *pending = (unsigned)read;
    return code;
}

int nvmlDeviceGetEccMode(Device device, unsigned *current, unsigned *pending) {
    ENTER_CARD(device);
    return mode_pair(card, "ecc", current, pending);
}

int nvmlDeviceGetMigMode(Device device, unsigned *current, unsigned *pending) {
    ENTER_CARD(device);
    return mode_pair(card, "mig", current, pending);
}

static int coder(const Card *card, const char *key, unsigned *percent, unsigned *period_us) {
    uint64_t read = 0;
    int code = number(card, key, &read);
    *percent = (unsigned)read;
    *period_us = 167000;
    return code;
}

int nvmlDeviceGetEncoderUtilization(Device device, unsigned *percent, unsigned *period_us) {
    ENTER_CARD(device);
    return coder(card, "encoder_percent", percent, period_us);
}

int nvmlDeviceGetDecoderUtilization(Device device, unsigned *percent, unsigned *period_us) {
    ENTER_CARD(device);
    return coder(card, "decoder_percent", percent, period_us);
}
