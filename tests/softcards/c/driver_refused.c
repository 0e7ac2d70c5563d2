/* Names of the driver that PyTorch and NVRTC look up and call without asking; soft cards refuse
 * them. Without the header, so that one definition serves every list of arguments. */
enum { NOT_SUPPORTED = 801 };

#define REFUSED(function)                                                                          \
    int function(void) {                                                                           \
        return NOT_SUPPORTED;                                                                      \
    }

REFUSED(soft_unsupported)
REFUSED(cuGetExportTable)
REFUSED(cuGetProcAddress)
REFUSED(cuGetProcAddress_v2)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate_v2)
REFUSED(cuLinkAddData_v2)
REFUSED(cuMemExportToShareableHandle)
REFUSED(cuMemImportFromShareableHandle)
REFUSED(cuMemRetainAllocationHandle)
REFUSED(cuMemGetAllocationPropertiesFromHandle)
REFUSED(cuMemsetD32Async)
REFUSED(cuMulticastAddDevice)
REFUSED(cuMulticastBindMem)
REFUSED(cuMulticastCreate)
REFUSED(cuMulticastUnbind)
REFUSED(cuStreamWriteValue32)
REFUSED(cuStreamWriteValue32_v2)
REFUSED(cuTensorMapEncodeTiled)
