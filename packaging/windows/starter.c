/* Two programs from one source: GPU Studio.exe, for a double-click, and gpu-studio.exe, for a terminal.
   Both run the Python beside them.

   gpu-studio                             opens the window, and ends once it is on the screen
   gpu-studio COMMAND [OPTIONS]           runs a command in this terminal; its exit status is the command's
   "GPU Studio.exe" --name-shortcut FILE  gives a shortcut the name by which the taskbar groups windows
   "GPU Studio.exe" --add-to-path         lets terminals of this user find gpu-studio
   "GPU Studio.exe" --remove-from-path    takes that away

   GPU Studio.exe without arguments says in a dialog what is wrong; otherwise it is printed. Every path
   is in UTF-16 and may be as long as Windows allows. build.py defines CONSOLE as 0 or 1. */

#define COBJMACROS
#define INITGUID
#include <windows.h>
#include <propkey.h>
#include <propvarutil.h>
#include <shellapi.h>
#include <shlobj.h>
#include <wchar.h>

#define LONGEST_PATH 32768
#define LONGEST_VARIABLE 32767 /* "Environment Variables" of the Windows API */
#define TITLE L"GPU Studio"
#define APP_ID L"gpu-studio"
#define LOOK_MS 100
#define LONGEST_START_MS 120000
#define DLL_NOT_FOUND 0xC0000135 /* STATUS_DLL_NOT_FOUND of ntstatus.h */

/* The first of each kind: a virus scanner or an interrupted update removes single files. */
static const wchar_t *const NEEDED[] = {
    L"python\\pythonw.exe", L"gpu_studio\\__main__.py", L"packages\\PySide6\\QtWidgets.pyd",
    L"packages\\PySide6\\plugins\\platforms\\qwindows.dll",
};
static const wchar_t *const NEEDED_BY_COMMANDS[] = {L"python\\python.exe", L"gpu_studio\\__main__.py"};

/* Whether somebody double-clicked, and sees no terminal. */
static BOOL has_dialog = !CONSOLE;

static void print_error(const wchar_t *text)
{
    HANDLE target = GetStdHandle(STD_ERROR_HANDLE);
    DWORD mode, written;
    if (GetConsoleMode(target, &mode)) {
        WriteConsoleW(target, text, (DWORD)wcslen(text), &written, NULL);
        WriteConsoleW(target, L"\r\n", 2, &written, NULL);
        return;
    }
    static char bytes[6 * LONGEST_PATH];
    int length = WideCharToMultiByte(CP_UTF8, 0, text, -1, bytes, sizeof bytes - 2, NULL, NULL);
    if (length > 0) {
        memcpy(bytes + length - 1, "\r\n", 2); /* in the place of the final 0 */
        WriteFile(target, bytes, (DWORD)length + 1, &written, NULL);
    }
}

static int refuse(const wchar_t *format, const wchar_t *told)
{
    wchar_t *text = HeapAlloc(GetProcessHeap(), 0, 2 * LONGEST_PATH * sizeof *text);
    if (text == NULL)
        return 1;
    _snwprintf(text, 2 * LONGEST_PATH - 1, format, told);
    text[2 * LONGEST_PATH - 1] = 0;
    if (has_dialog)
        MessageBoxW(NULL, text, TITLE, MB_OK | MB_ICONWARNING | MB_SETFOREGROUND);
    else
        print_error(text);
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

/* Set the path of the first file and the command line with which it runs; return 0 if all are there. */
static int prepare(const wchar_t *folder, const wchar_t *const needed[], size_t count, wchar_t *path,
                   wchar_t *command)
{
    for (size_t i = 0; i < count; i++) {
        if (!join(path, folder, needed[i]) || GetFileAttributesW(path) == INVALID_FILE_ATTRIBUTES)
            return refuse(L"A file of GPU Studio is missing:\n\n%ls\n\n"
                          L"A virus scanner may have removed it. Install GPU Studio again: your "
                          L"results stay.",
                          path);
    }
    join(path, folder, needed[0]);
    int length = _snwprintf(command, LONGEST_PATH, L"\"%ls\" -m gpu_studio %ls", path, arguments());
    if (length < 0 || length >= LONGEST_PATH)
        return refuse(L"The command is too long for Windows:\n\n%ls", path);
    return 0;
}

/* Ctrl+C is the command's: it says what it has, and this program waits for its status. */
static BOOL WINAPI leave_to_command(DWORD event)
{
    return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

/* Return a copy of a stream that a child inherits; NULL if there is none. */
static HANDLE inherited(DWORD which)
{
    HANDLE own = GetStdHandle(which), copy = NULL, process = GetCurrentProcess();
    if (own == NULL || own == INVALID_HANDLE_VALUE ||
        !DuplicateHandle(process, own, process, &copy, 0, TRUE, DUPLICATE_SAME_ACCESS))
        return NULL;
    return copy;
}

/* Return a job whose end, with this program, also ends the command; its own children are not in it. */
static HANDLE make_job(void)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    HANDLE job = CreateJobObjectW(NULL, NULL);
    limits.BasicLimitInformation.LimitFlags =
        JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
    if (job != NULL)
        SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    return job;
}

static int run_command(const wchar_t *folder, wchar_t *path, wchar_t *command)
{
    /* GPU Studio.exe has no terminal, but prints into the one in which it was typed. */
    BOOL has_terminal = CONSOLE || AttachConsole(ATTACH_PARENT_PROCESS);
    if (prepare(folder, NEEDED_BY_COMMANDS, sizeof NEEDED_BY_COMMANDS / sizeof *NEEDED_BY_COMMANDS,
                path, command) != 0)
        return 1;
    STARTUPINFOW start = {.cb = sizeof start};
    start.hStdInput = inherited(STD_INPUT_HANDLE);
    start.hStdOutput = inherited(STD_OUTPUT_HANDLE);
    start.hStdError = inherited(STD_ERROR_HANDLE);
    if (start.hStdInput != NULL || start.hStdOutput != NULL || start.hStdError != NULL)
        start.dwFlags = STARTF_USESTDHANDLES;
    PROCESS_INFORMATION started;
    HANDLE job = make_job();
    SetConsoleCtrlHandler(leave_to_command, TRUE);
    SetErrorMode(SEM_FAILCRITICALERRORS);
    if (!CreateProcessW(path, command, NULL, NULL, TRUE, has_terminal ? 0 : CREATE_NO_WINDOW, NULL,
                        NULL, &start, &started))
        return refuse_error(path, GetLastError());
    if (job != NULL)
        AssignProcessToJobObject(job, started.hProcess);
    DWORD status = 1;
    WaitForSingleObject(started.hProcess, INFINITE);
    GetExitCodeProcess(started.hProcess, &status);
    return (int)status;
}

static int open_window(const wchar_t *folder, wchar_t *path, wchar_t *command)
{
    if (prepare(folder, NEEDED, sizeof NEEDED / sizeof *NEEDED, path, command) != 0)
        return 1;
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

/* Return whether a part of PATH is a folder; Windows compares without case. */
static BOOL is_folder(const wchar_t *part, size_t length, const wchar_t *folder)
{
    if (length > 0 && part[length - 1] == L'\\')
        length--;
    return length == wcslen(folder) && _wcsnicmp(part, folder, length) == 0;
}

/* Add the folder to the user's PATH, or remove it. NSIS would cut a PATH of over 1,023 characters. */
static int change_path(const wchar_t *folder, BOOL is_added)
{
    static wchar_t before[LONGEST_VARIABLE + 1], after[LONGEST_VARIABLE + LONGEST_PATH + 1];
    DWORD type, size = sizeof before - sizeof *before;
    LSTATUS result = RegGetValueW(HKEY_CURRENT_USER, L"Environment", L"Path",
                                  RRF_RT_REG_SZ | RRF_RT_REG_EXPAND_SZ | RRF_NOEXPAND, &type, before,
                                  &size);
    if ((result != ERROR_SUCCESS && result != ERROR_FILE_NOT_FOUND) || wcschr(folder, L';') != NULL)
        return 1;
    if (result == ERROR_FILE_NOT_FOUND)
        type = REG_EXPAND_SZ; /* as Windows itself writes it */
    const wchar_t *part = before;
    while (*part != 0) {
        size_t length = wcscspn(part, L";");
        if (length > 0 && !is_folder(part, length, folder)) {
            if (*after != 0)
                wcscat(after, L";");
            wcsncat(after, part, length);
        }
        part += length + (part[length] == L';');
    }
    if (is_added) {
        if (*after != 0)
            wcscat(after, L";");
        wcscat(after, folder);
    }
    if (wcslen(after) > LONGEST_VARIABLE)
        return 1;
    if (*after == 0)
        result = RegDeleteKeyValueW(HKEY_CURRENT_USER, L"Environment", L"Path");
    else
        result = RegSetKeyValueW(HKEY_CURRENT_USER, L"Environment", L"Path", type, after,
                                 (DWORD)((wcslen(after) + 1) * sizeof *after));
    /* So that a terminal that is opened from now on has it. */
    SendMessageTimeoutW(HWND_BROADCAST, WM_SETTINGCHANGE, 0, (LPARAM)L"Environment",
                        SMTO_ABORTIFHUNG, 1000, NULL);
    return result == ERROR_SUCCESS || result == ERROR_FILE_NOT_FOUND ? 0 : 1;
}

int wmain(int count, wchar_t **words)
{
    static wchar_t folder[LONGEST_PATH], path[LONGEST_PATH], command[LONGEST_PATH];
    SetDllDirectoryW(L""); /* never a DLL from the folder that someone downloaded to */
    SetCurrentProcessExplicitAppUserModelID(APP_ID);
    has_dialog = has_dialog && count == 1;
    if (!find_folder(folder))
        return refuse(L"Windows does not say in which folder %ls is.", TITLE);
    if (!CONSOLE && count == 3 && wcscmp(words[1], L"--name-shortcut") == 0)
        return name_shortcut(words[2]);
    if (!CONSOLE && count == 2 && wcscmp(words[1], L"--add-to-path") == 0)
        return change_path(folder, TRUE);
    if (!CONSOLE && count == 2 && wcscmp(words[1], L"--remove-from-path") == 0)
        return change_path(folder, FALSE);
    return count > 1 ? run_command(folder, path, command) : open_window(folder, path, command);
}
