@echo off
rem Double-click this after you download GPU Studio: it sets GPU Studio up and opens it.
setlocal
title GPU Studio
set "SCRIPT=%~dp0bootstrap.py"
rem A double-click inside a downloaded .zip unpacks only this file.
if not exist "%SCRIPT%" (
    echo The rest of GPU Studio is missing: unpack the whole .zip file, then double-click this again.
    pause
    exit /b 1
)

set "FITS=import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))"

where py >nul 2>nul
if not errorlevel 1 for %%V in (3 3.14 3.13 3.12 3.11 3.10) do (
    py -%%V -c "%FITS%" >nul 2>nul && set "PYTHON=py -%%V" && goto start
)
rem The Microsoft Store puts a python.exe on the path that only opens the Store: this test rejects it.
python -c "%FITS%" >nul 2>nul && set "PYTHON=python" && goto start
echo GPU Studio needs Python 3.10 to 3.14. To install it, type
echo     winget install Python.Python.3.13
echo or download it from https://www.python.org/downloads/. Then double-click this again.
pause
exit /b 1

:start
%PYTHON% "%SCRIPT%" --progress window run %*
if not "%errorlevel%"=="0" pause
