# report.cmake -- makes a C file of the page of a report.  FROM is share/report, and TO the
# name of the C file.
#
# The words @NAME@ in report.html stand for the file NAME, and @runs@ for the data of a run.
# A page is text before that, data, and text after it.

file(READ ${FROM}/report.html page)
foreach(name uPlot.LICENSE uPlot.min.css uPlot.iife.min.js report.css report.js)
  file(READ ${FROM}/${name} text)
  string(STRIP "${text}" text)
  string(FIND "${page}" "@${name}@" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "report.html has no @${name}@")
  endif()
  string(REPLACE "@${name}@" "${text}" page "${page}")
endforeach()
string(FIND "${page}" "@runs@" at)
string(SUBSTRING "${page}" 0 ${at} head)
math(EXPR at "${at} + 6")
string(SUBSTRING "${page}" ${at} -1 tail)

set(source "/* Made by cmake/report.cmake from share/report. */\n#include \"run/page.h\"\n")
foreach(part head tail)
  file(WRITE ${TO}.${part} "${${part}}")
  file(READ ${TO}.${part} bytes HEX)
  file(REMOVE ${TO}.${part})
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND source
    "\nconst unsigned char kf_page_${part}[] = {\n${bytes}};\n"
    "const size_t kf_page_${part}_size = sizeof kf_page_${part};\n")
endforeach()
file(WRITE ${TO} "${source}")
