/* A DLL that only forwards, or whose every function returns 0. */
int __stdcall DllMain(void *module, unsigned reason, void *reserved) { return 1; }
long long nothing(void) { return 0; }
