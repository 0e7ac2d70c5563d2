/* A switch in place of cuDNN: PyTorch is told that the user turned it off.
 *
 * cuDNN too brings a runtime of its own, so every call of it would fail. This is PyTorch's C++
 * function at::Context::userEnabledCuDNN() const; answering false is what
 * torch.backends.cudnn.enabled = False does, and convolutions then go through cuBLAS.
 */
#include <stdbool.h>

bool soft_user_enabled_cudnn(const void *context) __asm__("_ZNK2at7Context16userEnabledCuDNNEv");

bool soft_user_enabled_cudnn(const void *context) {
    return false;
}
