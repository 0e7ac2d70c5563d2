/* uninstall.exe: removes GPU Studio, and ends with the status of that.

   uninstall.exe [/S] [/ENGINES] [/RESULTS]     as setup.nsi has it
   uninstall.exe --size FOLDER                  ends with the folder's size in KB: NSIS counts no file
                                                of over 2 GB

   The uninstaller of NSIS (remove.exe beside this program) would start a copy of itself and end at once
   with 0, as a running program cannot delete its own file. So this program runs the copy and waits
   for it. At last it moves its own file away, which Windows allows within one drive; on another drive
   a copy of it deletes the file right after its end. */

#include <windows.h>
#include <wchar.h>

#define LONGEST_PATH 32768
#define NOT_RUN 1
#define IN_USE 3 /* as in setup.nsi: something stays */
#define FINISH L"--finish"
#define SIZE L"--size"
#define LONGEST_END_MS 60000

static wchar_t own[LONGEST_PATH], folder[LONGEST_PATH], temporary[LONGEST_PATH];
static wchar_t copy[LONGEST_PATH], command[2 * LONGEST_PATH];

static BOOL join(wchar_t *text, size_t size, const wchar_t *format, const wchar_t *first,
                 const wchar_t *second, const wchar_t *third)
{
    int length = _snwprintf(text, size, format, first, second, third);
    return length > 0 && (size_t)length < size;
}

/* Return the command line behind the program's own name. */
static wchar_t *arguments(void)
{
    wchar_t *rest = GetCommandLineW();
    if (*rest == L'"') {
        rest = wcschr(rest + 1, L'"');
        rest = rest != NULL ? rest + 1 : L"";
    } else {
        rest += wcscspn(rest, L" \t");
    }
    return rest + wcsspn(rest, L" \t");
}

/* Say that there is nothing to run, if somebody is there to read it; return this program's status. */
static int refuse(const wchar_t *asked)
{
    if (wcsncmp(asked, L"/S", 2) != 0)
        MessageBoxW(NULL,
                    L"A file of GPU Studio is missing, or cannot be read: remove.exe\n\n"
                    L"A virus scanner may have removed it. Install GPU Studio again, then uninstall "
                    L"it: your results stay.",
                    L"GPU Studio", MB_OK | MB_ICONWARNING | MB_SETFOREGROUND);
    return NOT_RUN;
}

/* Make a folder for the copies, which is no part of the program's, and go there. */
static BOOL make_temporary(void)
{
    wchar_t base[MAX_PATH + 1], number[32];
    DWORD length = GetTempPathW(MAX_PATH + 1, base);
    if (length == 0 || length > MAX_PATH)
        return FALSE;
    _snwprintf(number, 32, L"%lx-%llx", GetCurrentProcessId(), GetTickCount64());
    return join(temporary, LONGEST_PATH, L"%lsgpu-studio-%ls%ls", base, number, L"") &&
           CreateDirectoryW(temporary, NULL) && SetCurrentDirectoryW(temporary);
}

static BOOL start(const wchar_t *program, BOOL hands_on, PROCESS_INFORMATION *started)
{
    STARTUPINFOW how = {.cb = sizeof how};
    return CreateProcessW(program, command, NULL, NULL, hands_on, 0, NULL, temporary, &how, started);
}

/* Remove the program's folder; what others put there stays. Return this program's status. */
static int remove_folder(void)
{
    if (RemoveDirectoryW(folder))
        return 0;
    DWORD error = GetLastError();
    return error == ERROR_DIR_NOT_EMPTY || error == ERROR_FILE_NOT_FOUND ? 0 : IN_USE;
}

/* Let a copy of this program delete its file once it has ended. */
static int leave_to_copy(void)
{
    wchar_t number[32];
    HANDLE process = GetCurrentProcess(), handed = NULL;
    PROCESS_INFORMATION started;
    if (!DuplicateHandle(process, process, process, &handed, SYNCHRONIZE, TRUE, 0))
        return IN_USE;
    _snwprintf(number, 32, L"%llu", (unsigned long long)(ULONG_PTR)handed);
    if (!join(copy, LONGEST_PATH, L"%ls\\%ls%ls", temporary, L"uninstall.exe", L"") ||
        !CopyFileW(own, copy, FALSE) ||
        !join(command, 2 * LONGEST_PATH, L"\"uninstall.exe\" " FINISH L" %ls \"%ls\"%ls", number,
               own, L"") ||
        !start(copy, TRUE, &started))
        return IN_USE;
    return 0;
}

static int finish(const wchar_t *process, const wchar_t *file)
{
    WaitForSingleObject((HANDLE)(ULONG_PTR)wcstoull(process, NULL, 10), LONGEST_END_MS);
    if (!DeleteFileW(file) || !join(folder, LONGEST_PATH, L"%ls%ls%ls", file, L"", L""))
        return IN_USE;
    *wcsrchr(folder, L'\\') = 0;
    return remove_folder();
}

/* Return the bytes in a folder; what a link leads to is elsewhere. */
static unsigned long long bytes_in(const wchar_t *place)
{
    unsigned long long bytes = 0;
    WIN32_FIND_DATAW found;
    wchar_t *name = HeapAlloc(GetProcessHeap(), 0, LONGEST_PATH * sizeof *name);
    if (name == NULL || !join(name, LONGEST_PATH, L"%ls\\*%ls%ls", place, L"", L""))
        return 0;
    HANDLE search = FindFirstFileW(name, &found);
    if (search == INVALID_HANDLE_VALUE)
        return 0;
    do {
        if (found.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT)
            continue;
        if (!(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY))
            bytes += (unsigned long long)found.nFileSizeHigh << 32 | found.nFileSizeLow;
        else if (wcscmp(found.cFileName, L".") != 0 && wcscmp(found.cFileName, L"..") != 0 &&
                 join(name, LONGEST_PATH, L"%ls\\%ls%ls", place, found.cFileName, L""))
            bytes += bytes_in(name);
    } while (FindNextFileW(search, &found));
    FindClose(search);
    HeapFree(GetProcessHeap(), 0, name);
    return bytes;
}

int WINAPI wWinMain(HINSTANCE instance, HINSTANCE before, wchar_t *line, int shown)
{
    (void)instance, (void)before, (void)line, (void)shown;
    SetDllDirectoryW(L""); /* never a DLL from the folder that someone downloaded to */
    if (__argc == 4 && wcscmp(__wargv[1], FINISH) == 0)
        return finish(__wargv[2], __wargv[3]);
    if (__argc == 3 && wcscmp(__wargv[1], SIZE) == 0)
        return (int)((bytes_in(__wargv[2]) + 1023) / 1024);
    DWORD length = GetModuleFileNameW(NULL, own, LONGEST_PATH), status = NOT_RUN;
    wchar_t *last, *rest = arguments(), *place = wcsstr(rest, L"_?=");
    if (length == 0 || length >= LONGEST_PATH)
        return NOT_RUN;
    wcscpy(folder, own);
    last = wcsrchr(folder, L'\\');
    if (last == NULL)
        return NOT_RUN;
    *last = 0;
    if (place != NULL)
        *place = 0; /* who knows NSIS names the folder to make it wait */
    PROCESS_INFORMATION started;
    if (!make_temporary() ||
        !join(command, 2 * LONGEST_PATH, L"%ls\\%ls%ls", folder, L"remove.exe", L"") ||
        !join(copy, LONGEST_PATH, L"%ls\\%ls%ls", temporary, L"remove.exe", L"") ||
        !CopyFileW(command, copy, FALSE))
        return refuse(rest);
    /* NSIS takes all that is behind the sign for the folder, and no quotes. */
    if (join(command, 2 * LONGEST_PATH, L"\"remove.exe\" %ls%ls _?=%ls", rest, L"", folder) &&
        start(copy, FALSE, &started)) {
        WaitForSingleObject(started.hProcess, INFINITE);
        GetExitCodeProcess(started.hProcess, &status);
    }
    DeleteFileW(copy);
    if (status == 0 && join(copy, LONGEST_PATH, L"%ls\\%ls%ls", temporary, L"uninstall.exe", L""))
        status = MoveFileExW(own, copy, 0) ? remove_folder() : leave_to_copy();
    SetCurrentDirectoryW(L"\\");
    RemoveDirectoryW(temporary); /* if it is empty */
    return (int)status;
}
