/* Starts Python in its own place and ends with it, as CPython's launchers for Windows do.

   As python.exe or pythonw.exe of a virtual environment: the program of that name in the folder
   that pyvenv.cfg calls home. As py.exe: python.exe in PYTHON_HOME, whatever version is asked for.
   The real py.exe refuses those that are not there, but the cmd of Wine 8 goes on after a failure in
   "a && b", and after a goto in a loop: it would end with the oldest version and not the first. */
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>
#include <shlwapi.h>

static wchar_t self[MAX_PATH], program[MAX_PATH], line[32768];

/* Find home in pyvenv.cfg, which stands above the folder of this program. */
static int read_home(void) {
    wchar_t path[MAX_PATH];
    char text[4 * MAX_PATH];
    int found = 0;
    wcscpy(path, self);
    PathRemoveFileSpecW(path);
    PathRemoveFileSpecW(path);
    PathAppendW(path, L"pyvenv.cfg");
    FILE *file = _wfopen(path, L"r");
    while (file && !found && fgets(text, sizeof text, file))
        if (!strncmp(text, "home = ", 7)) {
            text[strcspn(text, "\r\n")] = 0;
            found = MultiByteToWideChar(CP_UTF8, 0, text + 7, -1, program, MAX_PATH);
        }
    if (file) fclose(file);
    return found;
}

static BOOL WINAPI leave_it_to_python(DWORD event) { return TRUE; }

int wmain(void) {
    const wchar_t *arguments = PathGetArgsW(GetCommandLineW());
    GetModuleFileNameW(NULL, self, MAX_PATH);
    if (!_wcsicmp(PathFindFileNameW(self), L"py.exe")) {
        if (!wcsncmp(arguments, L"-3", 2)) arguments += wcscspn(arguments, L" ");
        wcscpy(program, PYTHON_HOME);
        PathAppendW(program, L"python.exe");
    } else {
        if (!read_home()) return 106;
        PathAppendW(program, PathFindFileNameW(self));
        SetEnvironmentVariableW(L"__PYVENV_LAUNCHER__", self);
    }
    _snwprintf(line, 32767, L"\"%ls\" %ls", program, arguments);

    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    limits.BasicLimitInformation.LimitFlags =
        JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
    HANDLE job = CreateJobObjectW(NULL, NULL);
    SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    STARTUPINFOW streams;
    PROCESS_INFORMATION python;
    DWORD status = 101;
    GetStartupInfoW(&streams);
    SetConsoleCtrlHandler(leave_it_to_python, TRUE);
    if (!CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, NULL, &streams, &python))
        return 101;
    AssignProcessToJobObject(job, python.hProcess);
    WaitForSingleObject(python.hProcess, INFINITE);
    GetExitCodeProcess(python.hProcess, &status);
    return (int)status;
}
