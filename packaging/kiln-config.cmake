# find_package(kiln), or Kiln: defines kiln::kiln (the compiler), kiln::host (the headers for hosts of any model,
# <kiln/kiln.h>) and the functions of KilnLibrary.cmake.
#
# The compiler is the one of the package that this file lies in; KILN_EXECUTABLE, if it is set before, names another.
get_filename_component(_kiln_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT KILN_EXECUTABLE)
  set(KILN_EXECUTABLE "${_kiln_prefix}/bin/kiln")
endif()
if(NOT TARGET kiln::host)
  add_library(kiln::host INTERFACE IMPORTED GLOBAL)
  set_target_properties(kiln::host PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_kiln_prefix}/include")
endif()
unset(_kiln_prefix)
if(NOT EXISTS "${KILN_EXECUTABLE}")
  set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
  set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE "there is no compiler at ${KILN_EXECUTABLE}")
  return()
endif()
if(NOT TARGET kiln::kiln)
  add_executable(kiln::kiln IMPORTED GLOBAL)
  set_target_properties(kiln::kiln PROPERTIES IMPORTED_LOCATION "${KILN_EXECUTABLE}")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/KilnLibrary.cmake")
