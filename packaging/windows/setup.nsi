; GPU Studio's setup for Windows: for one user, without an administrator.
;
;   SETUP /S [/D=C:\FOLDER]           installs silently; /DESKTOP adds a desktop icon
;   uninstall.exe /S                  removes the program; /ENGINES removes PyTorch as well, /RESULTS
;                                     the results, the settings and the logs
;
; Exit status 2: it was refused, and nothing was changed. 3, of uninstall.exe: something is in use, and
; stays. uninstall.exe is compiled from uninstall.c: it runs remove.exe, NSIS's own, and waits for it.
; build.py passes: VERSION, NUMBERS, OUT, ICON, SIDE (a picture), UNINSTALL (the compiled program),
; FILES (a script with the files), OLD (the same for what an update removes first), SIZE_KB,
; LONGEST_FOLDER (in characters), and SIGN, if there is a command that signs a file.

Unicode true
; A 64-bit Windows on Intel or AMD is needed anyway. A 32-bit Windows refuses this program itself.
Target amd64-unicode
ManifestSupportedOS Win10
ManifestDPIAware true
ManifestLongPathAware true
SetCompressor /SOLID lzma
SetCompressorDictSize 64
RequestExecutionLevel user
AllowSkipFiles off
; The files' own times, and not that of the installation, so that two installations are the same.
SetDateSave on

!include MUI2.nsh
!include Sections.nsh
!include x64.nsh
!include WinVer.nsh
!include FileFunc.nsh
!include LogicLib.nsh

!define NAME "GPU Studio"
!define KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\GPU Studio"
!define DATA "$LOCALAPPDATA\gpu-studio"
!define ENGINES "${DATA}\engines"
!define DOWNLOADS "${ENGINES}\downloads"
!define IN_USE 3

; What the pages call the sum of what is chosen.
Var SpaceWords
; The folders of which something is in use, each behind a line's end.
Var Left

!ifdef SIGN
  !uninstfinalize '${SIGN} "%1"' = 0
  !finalize '${SIGN} "%1"' = 0
!endif

Name "${NAME}"
BrandingText "${NAME} ${VERSION}"
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${KEY}" InstallLocation

VIProductVersion "${NUMBERS}"
VIFileVersion "${NUMBERS}"
VIAddVersionKey ProductName "${NAME}"
VIAddVersionKey ProductVersion "${VERSION}"
VIAddVersionKey FileVersion "${VERSION}"
VIAddVersionKey FileDescription "${NAME} setup"
VIAddVersionKey CompanyName "${NAME}"
VIAddVersionKey LegalCopyright "MIT license"

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_WELCOMEFINISHPAGE_BITMAP "${SIDE}"
!define MUI_ABORTWARNING
!define MUI_COMPONENTSPAGE_SMALLDESC
!define MUI_PAGE_CUSTOMFUNCTION_LEAVE CheckFolder
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_INSTFILES
!define MUI_FINISHPAGE_TITLE "GPU Studio is installed"
!define MUI_FINISHPAGE_TEXT "The window opens within seconds. To measure, it needs PyTorch: it offers \
to download the build that fits your card, first about 130 MB for the CPU. You can already look \
around meanwhile."
!define MUI_FINISHPAGE_RUN "$INSTDIR\GPU Studio.exe"
!define MUI_FINISHPAGE_RUN_TEXT "Open GPU Studio"
!insertmacro MUI_PAGE_FINISH
SpaceTexts "$SpaceWords" "Space available: "
!insertmacro MUI_UNPAGE_COMPONENTS
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE English

; Refuse with a sentence; a silent installation has only the exit status.
!macro Refuse SENTENCE
  MessageBox MB_OK|MB_ICONSTOP "${SENTENCE}" /SD IDOK
  SetErrorLevel 2
  Quit
!macroend

; A program that runs cannot be opened for writing. The first COUNT are looked at: all five, or four by
; the uninstaller, which runs itself.
!macro WaitUntilClosed LABEL COUNT
  ${LABEL}:
  StrCpy $1 ""
  ${For} $2 1 ${COUNT}
    ${Select} $2
      ${Case} 1
        StrCpy $3 "$INSTDIR\python\pythonw.exe"
      ${Case} 2
        StrCpy $3 "$INSTDIR\python\python.exe"
      ${Case} 3
        StrCpy $3 "$INSTDIR\gpu-studio.exe"
      ${Case} 4
        StrCpy $3 "$INSTDIR\GPU Studio.exe"
      ${Default}
        StrCpy $3 "$INSTDIR\uninstall.exe"
    ${EndSelect}
    ${If} ${FileExists} "$3"
      ClearErrors
      FileOpen $4 "$3" a
      ${If} ${Errors}
        StrCpy $1 "$3"
      ${Else}
        FileClose $4
      ${EndIf}
    ${EndIf}
  ${Next}
  ${If} $1 != ""
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION \
      "GPU Studio is open. Close its window, then press Retry.$\r$\n$\r$\nIn use: $1" \
      /SD IDCANCEL IDRETRY ${LABEL}
    SetErrorLevel 2
    Quit
  ${EndIf}
!macroend

; Sets $0 to "" if the program may be installed in $INSTDIR, else to the reason.
Function LookAtFolder
  StrCpy $0 ""
  ReadRegDWORD $2 HKLM "SYSTEM\CurrentControlSet\Control\FileSystem" LongPathsEnabled
  StrLen $1 "$INSTDIR"
  ${If} $1 > ${LONGEST_FOLDER}
  ${AndIf} $2 != 1
    StrCpy $0 "The name of this folder is too long for Windows: it has $1 characters; ${LONGEST_FOLDER} \
are the most.$\r$\n$\r$\nChoose a folder with a shorter name."
    Return
  ${EndIf}
  ${If} ${FileExists} "$INSTDIR\installed.json"
  ${OrIf} ${FileExists} "$INSTDIR\remove.exe"
    Return ; an update, or a removal that was not finished
  ${EndIf}
  ClearErrors
  FindFirst $1 $2 "$INSTDIR\*"
  ${DoWhile} $2 != ""
    ${If} $2 != "."
    ${AndIf} $2 != ".."
      StrCpy $0 "This folder has other files: $INSTDIR$\r$\n$\r$\nChoose a new or an empty folder."
    ${EndIf}
    FindNext $1 $2
  ${Loop}
  FindClose $1
FunctionEnd

Function CheckFolder
  Call LookAtFolder
  ${If} $0 != ""
    MessageBox MB_OK|MB_ICONEXCLAMATION "$0"
    Abort
  ${EndIf}
FunctionEnd

Section "GPU Studio" SecProgram
  SectionIn RO
  Call LookAtFolder
  ${If} $0 != ""
    !insertmacro Refuse "$0"
  ${EndIf}
  !insertmacro WaitUntilClosed still_open 5
  SetOverwrite on
  ; A module of an older version, left behind, could be imported in the place of a package.
  !include "${OLD}"
  !include "${FILES}"
  SetOutPath "$INSTDIR"
  WriteUninstaller "$INSTDIR\remove.exe"
  File "/oname=$INSTDIR\uninstall.exe" "${UNINSTALL}"
  WriteRegStr HKCU "${KEY}" DisplayName "${NAME}"
  WriteRegStr HKCU "${KEY}" DisplayVersion "${VERSION}"
  WriteRegStr HKCU "${KEY}" DisplayIcon "$INSTDIR\GPU Studio.exe"
  WriteRegStr HKCU "${KEY}" Publisher "${NAME}"
  WriteRegStr HKCU "${KEY}" InstallLocation "$INSTDIR"
  WriteRegStr HKCU "${KEY}" UninstallString '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${KEY}" QuietUninstallString '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${KEY}" NoModify 1
  WriteRegDWORD HKCU "${KEY}" NoRepair 1
  WriteRegDWORD HKCU "${KEY}" EstimatedSize ${SIZE_KB}
  ; In the user's own folder: the program's would be locked by every program started from the menu.
  SetOutPath "$PROFILE"
  CreateShortCut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\GPU Studio.exe"
  ExecWait '"$INSTDIR\GPU Studio.exe" --name-shortcut "$SMPROGRAMS\${NAME}.lnk"'
  ; An update without the next part takes it away.
  ExecWait '"$INSTDIR\GPU Studio.exe" --remove-from-path'
SectionEnd

Section "Command for terminals" SecTerminal
  ExecWait '"$INSTDIR\GPU Studio.exe" --add-to-path'
SectionEnd

Section "Desktop icon" SecDesktop
  SetOutPath "$PROFILE"
  CreateShortCut "$DESKTOP\${NAME}.lnk" "$INSTDIR\GPU Studio.exe"
  ExecWait '"$INSTDIR\GPU Studio.exe" --name-shortcut "$DESKTOP\${NAME}.lnk"'
SectionEnd

!insertmacro MUI_FUNCTION_DESCRIPTION_BEGIN
  !insertmacro MUI_DESCRIPTION_TEXT ${SecProgram} "The program with its own Python, in your user folder."
  !insertmacro MUI_DESCRIPTION_TEXT ${SecTerminal} "Adds the program's folder to your PATH, so that a terminal finds the command gpu-studio."
  !insertmacro MUI_DESCRIPTION_TEXT ${SecDesktop} "An icon to double-click, on your desktop."
!insertmacro MUI_FUNCTION_DESCRIPTION_END

Function .onInit
  StrCpy $SpaceWords "Space required: "
  ${If} ${IsNativeARM64}
    !insertmacro Refuse "GPU Studio does not run on Windows on ARM: PyTorch's CUDA builds need a PC \
with an Intel or AMD processor. Nothing was installed."
  ${EndIf}
  ${IfNot} ${AtLeastWin10}
    !insertmacro Refuse "GPU Studio needs Windows 10 or 11. Nothing was installed."
  ${EndIf}
  ${If} ${Silent}
    ${GetParameters} $0
    ${GetOptions} $0 "/DESKTOP" $1
    ${If} ${Errors}
      !insertmacro UnselectSection ${SecDesktop}
    ${EndIf}
  ${EndIf}
FunctionEnd

; Remember that something of PLACE is in use, if the last commands say so.
!macro NoteLeft PLACE
  ${If} ${Errors}
    StrCpy $Left "$Left$\r$\n${PLACE}"
  ${EndIf}
!macroend

; Remove what is in a folder, but for one folder in it, which is another question.
!macro RemoveAllBut FOLDER KEPT
  ClearErrors
  FindFirst $0 $1 "${FOLDER}\*"
  ${DoWhile} $1 != ""
    ${If} $1 != "."
    ${AndIf} $1 != ".."
    ${AndIf} $1 != "${KEPT}"
      ClearErrors
      ${If} ${FileExists} "${FOLDER}\$1\*"
        RMDir /r "${FOLDER}\$1"
      ${Else}
        Delete "${FOLDER}\$1"
      ${EndIf}
      !insertmacro NoteLeft "${FOLDER}\$1"
    ${EndIf}
    ClearErrors
    FindNext $0 $1
  ${Loop}
  FindClose $0
  RMDir "${FOLDER}" ; only if nothing else is in it
  ClearErrors
!macroend

Section "un.GPU Studio" UnProgram
  SectionIn RO
  ${IfNot} ${FileExists} "$INSTDIR\remove.exe"
    !insertmacro Refuse "This is not GPU Studio's folder: $INSTDIR$\r$\n$\r$\nNothing was removed."
  ${EndIf}
  !insertmacro WaitUntilClosed un_still_open 4
  ExecWait '"$INSTDIR\GPU Studio.exe" --remove-from-path'
  SetOutPath "$TEMP"
  ClearErrors
  !include "${OLD}"
  !insertmacro NoteLeft "$INSTDIR"
  Delete "$SMPROGRAMS\${NAME}.lnk"
  Delete "$DESKTOP\${NAME}.lnk"
SectionEnd

Section /o "un.PyTorch" UnEngines
  !insertmacro RemoveAllBut "${ENGINES}" "downloads"
  RMDir "${DATA}"
SectionEnd

Section /o "un.Unfinished downloads" UnDownloads
  ${If} ${FileExists} "${DOWNLOADS}\*"
    ClearErrors
    RMDir /r "${DOWNLOADS}"
    !insertmacro NoteLeft "${DOWNLOADS}"
    RMDir "${ENGINES}"
    RMDir "${DATA}"
  ${EndIf}
SectionEnd

Section /o "un.Results, settings, logs" UnResults
  !insertmacro RemoveAllBut "${DATA}" "engines"
SectionEnd

; The entry among the installed programs stays until all is gone that was asked for.
Section "-un.End"
  ${If} $Left != ""
    MessageBox MB_OK|MB_ICONEXCLAMATION "Files in these folders are in use, and were not \
removed:$\r$\n$Left$\r$\n$\r$\nClose the programs that use them, then uninstall GPU Studio again." /SD IDOK
    SetErrorLevel ${IN_USE}
    Abort "Some files are in use and were not removed."
  ${EndIf}
  DeleteRegKey HKCU "${KEY}"
  Delete "$INSTDIR\remove.exe"
  Delete "$INSTDIR\uninstall.exe" ; unless it waits for this, and does it itself
  RMDir "$INSTDIR" ; only if nothing else is in it
SectionEnd

!insertmacro MUI_UNFUNCTION_DESCRIPTION_BEGIN
  !insertmacro MUI_DESCRIPTION_TEXT ${UnProgram} "The program and its shortcuts."
  !insertmacro MUI_DESCRIPTION_TEXT ${UnEngines} "What GPU Studio downloaded and installed. To use it again, you have to download it again."
  !insertmacro MUI_DESCRIPTION_TEXT ${UnDownloads} "Parts of downloads that can be continued."
  !insertmacro MUI_DESCRIPTION_TEXT ${UnResults} "Your measurements and recordings cannot be brought back."
!insertmacro MUI_UNFUNCTION_DESCRIPTION_END

; Show a size with a choice, and in the page's sum.
!macro ShowSize SECTION TITLE KB
  SectionSetSize ${SECTION} ${KB}
  StrCpy $8 ${KB}
  Call un.SizeInWords
  SectionSetText ${SECTION} "${TITLE} ($9)"
!macroend

; Sets $9 to the words for a size of $8 KB.
Function un.SizeInWords
  StrCpy $9 "nothing"
  ${If} $8 >= 1048576
    IntOp $7 $8 / 104858 ; tenths of a GB
    IntOp $6 $7 % 10
    IntOp $7 $7 / 10
    StrCpy $9 "$7.$6 GB"
  ${ElseIf} $8 >= 1024
    IntOp $7 $8 / 1024
    StrCpy $9 "$7 MB"
  ${ElseIf} $8 > 0
    StrCpy $9 "$8 KB"
  ${EndIf}
FunctionEnd

; Sets $0 to the size of a folder in KB, 0 if there is none.
!macro SizeOf FOLDER
  StrCpy $0 0
  ExecWait '"$INSTDIR\uninstall.exe" --size "${FOLDER}"' $0
!macroend

Function un.onInit
  StrCpy $SpaceWords "Space freed: "
  ${If} ${Silent}
    ${GetParameters} $0
    ClearErrors
    ${GetOptions} $0 "/ENGINES" $1
    ${IfNot} ${Errors}
      !insertmacro SelectSection ${UnEngines}
      !insertmacro SelectSection ${UnDownloads}
    ${EndIf}
    ClearErrors
    ${GetOptions} $0 "/RESULTS" $1
    ${IfNot} ${Errors}
      !insertmacro SelectSection ${UnResults}
    ${EndIf}
    Return
  ${EndIf}
  !insertmacro SizeOf "$INSTDIR"
  !insertmacro ShowSize ${UnProgram} "GPU Studio" $0
  !insertmacro SizeOf "${DOWNLOADS}"
  StrCpy $3 $0
  !insertmacro ShowSize ${UnDownloads} "Unfinished downloads" $3
  ${If} $3 > 0
    !insertmacro SelectSection ${UnDownloads}
  ${EndIf}
  !insertmacro SizeOf "${ENGINES}"
  StrCpy $4 $0
  IntOp $5 $4 - $3
  !insertmacro ShowSize ${UnEngines} "PyTorch" $5
  ${If} $5 > 0
    !insertmacro SelectSection ${UnEngines}
  ${EndIf}
  !insertmacro SizeOf "${DATA}"
  IntOp $5 $0 - $4
  !insertmacro ShowSize ${UnResults} "Results, settings, logs" $5
FunctionEnd
