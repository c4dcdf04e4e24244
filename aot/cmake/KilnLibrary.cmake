# kiln_library(NAME MODULE [CONFIG FILE] [LEVELS v3 v4 ...] [TUNING FILE...]): a module as a static library target.
#
#   set(KILN_EXECUTABLE /path/to/kiln)
#   include(KilnLibrary.cmake)
#   kiln_library(mlp mlp.mlir)
#   target_link_libraries(app PRIVATE mlp)        # app.cc: #include "mlp.h"

find_program(KILN_EXECUTABLE kiln DOC "The kiln compiler")

function(kiln_library NAME MODULE)
  cmake_parse_arguments(ARG "" "CONFIG" "LEVELS;TUNING" ${ARGN})
  if(NOT KILN_EXECUTABLE)
    message(FATAL_ERROR "kiln_library: set KILN_EXECUTABLE to the kiln compiler")
  endif()
  get_filename_component(module "${MODULE}" ABSOLUTE)
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/kiln_${NAME}")
  set(command "${KILN_EXECUTABLE}" compile "${module}" --name "${NAME}" --out "${dir}")
  set(inputs "${module}")
  if(ARG_CONFIG)
    get_filename_component(config "${ARG_CONFIG}" ABSOLUTE)
    list(APPEND command --config "${config}")
    list(APPEND inputs "${config}")
  endif()
  foreach(results IN LISTS ARG_TUNING)
    get_filename_component(results "${results}" ABSOLUTE)
    list(APPEND command --tuning "${results}")
    list(APPEND inputs "${results}")
  endforeach()
  foreach(level IN LISTS ARG_LEVELS)
    list(APPEND command --target "${level}")
  endforeach()
  file(MAKE_DIRECTORY "${dir}")
  add_custom_command(
    OUTPUT "${dir}/lib${NAME}.a" "${dir}/${NAME}.h" "${dir}/${NAME}_c.h" "${dir}/${NAME}.manifest.json"
    COMMAND ${command}
    DEPENDS ${inputs} "${KILN_EXECUTABLE}"
    COMMENT "Compiling model ${NAME}"
    VERBATIM)
  add_custom_target(${NAME}_kiln DEPENDS "${dir}/lib${NAME}.a")
  add_library(${NAME} STATIC IMPORTED GLOBAL)
  add_dependencies(${NAME} ${NAME}_kiln)
  set_target_properties(${NAME} PROPERTIES
    IMPORTED_LOCATION "${dir}/lib${NAME}.a"
    INTERFACE_INCLUDE_DIRECTORIES "${dir}"
    INTERFACE_LINK_LIBRARIES "m;pthread;${CMAKE_DL_LIBS}")
endfunction()
