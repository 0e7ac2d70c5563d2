/* GPU Studio.exe: opens the window with the Python beside it, and says why if it cannot.

   GPU Studio.exe [ARGS...]             opens the window
   GPU Studio.exe --name-shortcut FILE  gives a shortcut the name by which the taskbar groups windows

   It ends once the window is on the screen. Every path is in UTF-16 and may be as long as Windows
   allows. */

#define COBJMACROS
#define INITGUID
#include <windows.h>
#include <propkey.h>
#include <propvarutil.h>
#include <shellapi.h>
#include <shlobj.h>
#include <wchar.h>

#define LONGEST_PATH 32768
#define TITLE L"GPU Studio"
#define APP_ID L"org.gpustudio.GPUStudio"
#define LOOK_MS 100
#define LONGEST_START_MS 120000
#define DLL_NOT_FOUND 0xC0000135 /* STATUS_DLL_NOT_FOUND of ntstatus.h */

/* The first of each kind: a virus scanner or an interrupted update removes single files. */
static const wchar_t *const NEEDED[] = {
    L"python\\pythonw.exe", L"gpu_studio\\__main__.py", L"packages\\PySide6\\QtWidgets.pyd",
    L"packages\\PySide6\\plugins\\platforms\\qwindows.dll",
};

static int refuse(const wchar_t *format, const wchar_t *told)
{
    wchar_t *text = HeapAlloc(GetProcessHeap(), 0, 2 * LONGEST_PATH * sizeof *text);
    if (text == NULL)
        return 1;
    _snwprintf(text, 2 * LONGEST_PATH - 1, format, told);
    text[2 * LONGEST_PATH - 1] = 0;
    MessageBoxW(NULL, text, TITLE, MB_OK | MB_ICONWARNING | MB_SETFOREGROUND);
    return 1;
}

static int refuse_error(const wchar_t *path, DWORD error)
{
    wchar_t *reason = NULL;
    FormatMessageW(FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM |
                       FORMAT_MESSAGE_IGNORE_INSERTS,
                   NULL, error, 0, (wchar_t *)&reason, 0, NULL);
    wchar_t *both = HeapAlloc(GetProcessHeap(), 0, 2 * LONGEST_PATH * sizeof *both);
    if (both == NULL)
        return 1;
    _snwprintf(both, 2 * LONGEST_PATH - 1, L"%ls\n\nWindows says: %ls", path,
               reason != NULL ? reason : L"(no reason)");
    both[2 * LONGEST_PATH - 1] = 0;
    return refuse(L"GPU Studio cannot start this program: %ls", both);
}

/* Set the folder of this program, without a backslash at its end. */
static BOOL find_folder(wchar_t *folder)
{
    DWORD length = GetModuleFileNameW(NULL, folder, LONGEST_PATH);
    if (length == 0 || length >= LONGEST_PATH)
        return FALSE;
    wchar_t *last = wcsrchr(folder, L'\\');
    if (last == NULL)
        return FALSE;
    *last = 0;
    return TRUE;
}

static BOOL join(wchar_t *path, const wchar_t *folder, const wchar_t *name)
{
    int length = _snwprintf(path, LONGEST_PATH, L"%ls\\%ls", folder, name);
    return length > 0 && length < LONGEST_PATH;
}

/* Return the command line behind the program's own name, which CommandLineToArgvW would unquote. */
static const wchar_t *arguments(void)
{
    const wchar_t *rest = GetCommandLineW();
    if (*rest == L'"') {
        rest = wcschr(rest + 1, L'"');
        rest = rest != NULL ? rest + 1 : L"";
    } else {
        rest += wcscspn(rest, L" \t");
    }
    return rest + wcsspn(rest, L" \t");
}

typedef struct {
    DWORD process;
    BOOL is_shown;
} Window;

static BOOL CALLBACK look_at(HWND window, LPARAM told)
{
    Window *sought = (Window *)told;
    DWORD process = 0;
    GetWindowThreadProcessId(window, &process);
    if (process == sought->process && IsWindowVisible(window))
        sought->is_shown = TRUE;
    return !sought->is_shown;
}

/* Wait for the window, or for the process's end; return this program's exit status. */
static int wait_for_window(const PROCESS_INFORMATION *started)
{
    Window window = {started->dwProcessId, FALSE};
    for (DWORD waited = 0; waited < LONGEST_START_MS; waited += LOOK_MS) {
        if (WaitForSingleObject(started->hProcess, LOOK_MS) == WAIT_OBJECT_0) {
            DWORD status = 0;
            wchar_t number[16];
            GetExitCodeProcess(started->hProcess, &status);
            if (status == 0)
                return 0;
            if (status == DLL_NOT_FOUND)
                return refuse(L"GPU Studio cannot start because a library of Windows is missing.\n\n"
                              L"Install the Microsoft Visual C++ Redistributable (x64) from %ls, "
                              L"then start GPU Studio again.",
                              L"https://aka.ms/vs/17/release/vc_redist.x64.exe");
            _snwprintf(number, 16, L"0x%08lX", status);
            return refuse(L"GPU Studio ended before its window was open (code %ls).\n\n"
                          L"Install GPU Studio again: your results stay. If it still does not "
                          L"start, the log is in the folder %%LOCALAPPDATA%%\\gpu-studio\\Logs.",
                          number);
        }
        EnumWindows(look_at, (LPARAM)&window);
        if (window.is_shown)
            return 0;
    }
    return 0; /* a very slow PC: the window comes later */
}

static int open_window(const wchar_t *folder, wchar_t *path, wchar_t *command)
{
    for (size_t i = 0; i < sizeof NEEDED / sizeof *NEEDED; i++) {
        if (!join(path, folder, NEEDED[i]) || GetFileAttributesW(path) == INVALID_FILE_ATTRIBUTES)
            return refuse(L"A file of GPU Studio is missing:\n\n%ls\n\n"
                          L"A virus scanner may have removed it. Install GPU Studio again: your "
                          L"results stay.",
                          path);
    }
    join(path, folder, NEEDED[0]);
    if (_snwprintf(command, LONGEST_PATH, L"\"%ls\" -m gpu_studio %ls", path, arguments()) < 0)
        return refuse(L"The folder's name is too long:\n\n%ls", folder);
    /* Not the program's folder, which an uninstallation could not remove then. */
    wchar_t home[MAX_PATH];
    DWORD length = GetEnvironmentVariableW(L"USERPROFILE", home, MAX_PATH);
    BOOL has_home = length > 0 && length < MAX_PATH &&
                    GetFileAttributesW(home) != INVALID_FILE_ATTRIBUTES;
    STARTUPINFOW start = {.cb = sizeof start};
    PROCESS_INFORMATION started;
    SetErrorMode(SEM_FAILCRITICALERRORS); /* inherited: a missing DLL is told below, in one sentence */
    if (!CreateProcessW(path, command, NULL, NULL, FALSE, 0, NULL, has_home ? home : NULL, &start,
                        &started))
        return refuse_error(path, GetLastError());
    AllowSetForegroundWindow(started.dwProcessId);
    return wait_for_window(&started);
}

/* Give a shortcut the identity of the window, so that a pinned window starts this program. */
static int name_shortcut(const wchar_t *file)
{
    IShellLinkW *link = NULL;
    IPersistFile *saved = NULL;
    IPropertyStore *store = NULL;
    PROPVARIANT name = {.vt = VT_LPWSTR, .pwszVal = (wchar_t *)APP_ID};
    HRESULT result = CoInitialize(NULL);
    if (SUCCEEDED(result))
        result = CoCreateInstance(&CLSID_ShellLink, NULL, CLSCTX_INPROC_SERVER, &IID_IShellLinkW,
                                  (void **)&link);
    if (SUCCEEDED(result))
        result = IShellLinkW_QueryInterface(link, &IID_IPersistFile, (void **)&saved);
    if (SUCCEEDED(result))
        result = IPersistFile_Load(saved, file, STGM_READWRITE);
    if (SUCCEEDED(result))
        result = IShellLinkW_QueryInterface(link, &IID_IPropertyStore, (void **)&store);
    if (SUCCEEDED(result))
        result = IPropertyStore_SetValue(store, &PKEY_AppUserModel_ID, &name);
    if (SUCCEEDED(result))
        result = IPropertyStore_Commit(store);
    if (SUCCEEDED(result))
        result = IPersistFile_Save(saved, file, TRUE);
    return SUCCEEDED(result) ? 0 : 1; /* the process's end frees the rest */
}

int WINAPI wWinMain(HINSTANCE instance, HINSTANCE previous, PWSTR line, int show)
{
    static wchar_t folder[LONGEST_PATH], path[LONGEST_PATH], command[LONGEST_PATH];
    (void)instance, (void)previous, (void)line, (void)show;
    SetDllDirectoryW(L""); /* never a DLL from the folder that someone downloaded to */
    SetCurrentProcessExplicitAppUserModelID(APP_ID);
    if (__argc == 3 && wcscmp(__wargv[1], L"--name-shortcut") == 0)
        return name_shortcut(__wargv[2]);
    if (!find_folder(folder))
        return refuse(L"Windows does not say in which folder %ls is.", TITLE);
    return open_window(folder, path, command);
}
