# Functions for projects that use kiln; find_package(kiln) includes this file.
#
#   find_package(kiln REQUIRED)
#   kiln_library(mlp mlp.mlir)
#   target_link_libraries(app PRIVATE mlp)        # app.cc: #include "mlp.h"
#   kiln_test(mlp_test mlp.mlir RTOL 1e-5 ATOL 1e-6)
#   kiln_benchmark(mlp_benchmark mlp)
#   kiln_size_report(sizes mlp)
#   kiln_shared_object(models mlp)                # models.so, for programs that load models

find_program(KILN_EXECUTABLE kiln DOC "The kiln compiler")

# Fails unless there is a compiler, and unless all words of a call were understood.
function(_kiln_check FUNCTION UNKNOWN)
  if(NOT KILN_EXECUTABLE)
    message(FATAL_ERROR "${FUNCTION}: set KILN_EXECUTABLE to the kiln compiler")
  endif()
  if(UNKNOWN)
    message(FATAL_ERROR "${FUNCTION}: unknown arguments: ${UNKNOWN}")
  endif()
endfunction()

# Adds OPTION=<absolute path> for each file to the list COMMAND, and the path to the list INPUTS.
macro(_kiln_files COMMAND INPUTS OPTION)
  foreach(_file ${ARGN})
    get_filename_component(_file "${_file}" ABSOLUTE)
    list(APPEND ${COMMAND} "${OPTION}=${_file}")
    list(APPEND ${INPUTS} "${_file}")
  endforeach()
endmacro()

# kiln_library(NAME MODULE [CONFIG FILE] [LEVELS v3 v4 ...] [GPU sm_90 ...] [BATCH 1 8 ...] [DIM N] [ENTRY FUNCTION]
#              [FUNCTIONS FUNCTION...] [TUNING FILE...] [DEPS TARGET...] [WEIGHTS_FILE]): a module as a static library
# target. kiln_library(NAME ENTRIES ENTRY=MODULE... ...): several modules as one, an entry each.
#
# ENTRY: the only public function to compile. FUNCTIONS: those that become entries; by default all do.
# LEVELS: x86-64 levels in the archive. GPU: NVIDIA GPUs; without LEVELS, the GPU program alone. BATCH: variants for these
# sizes of the unbounded dimension. DIM: the extent of every unbounded dimension. DEPS: libraries with the functions that
# custom calls name. WEIGHTS_FILE: the config keeps constants out of the archive (weights { constants_from_bytes }); the
# property KILN_WEIGHTS is the file that has them.
function(kiln_library NAME)
  cmake_parse_arguments(ARG "WEIGHTS_FILE" "CONFIG;DIM;ENTRY" "LEVELS;GPU;BATCH;TUNING;DEPS;ENTRIES;FUNCTIONS" ${ARGN})
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/kiln_${NAME}")
  set(command "${KILN_EXECUTABLE}" compile --name "${NAME}" --out "${dir}")
  set(inputs)
  if(NOT ARG_ENTRIES)
    list(LENGTH ARG_UNPARSED_ARGUMENTS count)
    if(count EQUAL 0)
      message(FATAL_ERROR "kiln_library: neither MODULE nor ENTRIES are given")
    endif()
    list(GET ARG_UNPARSED_ARGUMENTS 0 module)
    list(REMOVE_AT ARG_UNPARSED_ARGUMENTS 0)
    get_filename_component(module "${module}" ABSOLUTE)
    list(APPEND command "${module}")
    list(APPEND inputs "${module}")
  endif()
  _kiln_check(kiln_library "${ARG_UNPARSED_ARGUMENTS}")
  foreach(entry IN LISTS ARG_ENTRIES)
    if(NOT entry MATCHES "^([^=]+)=(.+)$")
      message(FATAL_ERROR "kiln_library: ENTRIES takes ENTRY=MODULE, not ${entry}")
    endif()
    _kiln_files(command inputs --entry=${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endforeach()
  foreach(function IN LISTS ARG_FUNCTIONS)
    list(APPEND command "--entry=${function}")
  endforeach()
  _kiln_files(command inputs --config ${ARG_CONFIG})
  _kiln_files(command inputs --tuning ${ARG_TUNING})
  foreach(target IN LISTS ARG_LEVELS ARG_GPU)
    list(APPEND command "--target=${target}")
  endforeach()
  foreach(size IN LISTS ARG_BATCH)
    list(APPEND command "--batch=${size}")
  endforeach()
  if(DEFINED ARG_DIM)
    list(APPEND command "--dim=${ARG_DIM}")
  endif()
  if(DEFINED ARG_ENTRY)
    list(APPEND command "--entry=${ARG_ENTRY}")
  endif()
  set(weights)
  if(ARG_WEIGHTS_FILE)
    set(weights "${dir}/${NAME}.safetensors")
  endif()
  file(MAKE_DIRECTORY "${dir}")
  add_custom_command(
    OUTPUT "${dir}/lib${NAME}.a" "${dir}/${NAME}.h" "${dir}/${NAME}_c.h" "${dir}/${NAME}.manifest.json" ${weights}
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
    INTERFACE_LINK_LIBRARIES "${ARG_DEPS};m;pthread;${CMAKE_DL_LIBS}"
    KILN_MANIFEST "${dir}/${NAME}.manifest.json"
    KILN_WEIGHTS "${weights}")
endfunction()

# kiln_test(NAME MODULE [INPUTS FILE.npy...] [SEED N] [CONFIG FILE] [LEVELS ...] [DIM N] [ENTRY FUNCTION] [ATOL X] [RTOL X]
#           [ULPS N]): a test (add_test) that compares compiled code with the reference evaluator, and that names the
# rewrite at fault where it differs. Without any limit: ATOL 1e-6 RTOL 1e-5.
function(kiln_test NAME MODULE)
  cmake_parse_arguments(ARG "" "SEED;CONFIG;DIM;ENTRY;ATOL;RTOL;ULPS" "INPUTS;LEVELS" ${ARGN})
  _kiln_check(kiln_test "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT DEFINED ARG_ATOL AND NOT DEFINED ARG_RTOL AND NOT DEFINED ARG_ULPS)
    set(ARG_ATOL 1e-6)
    set(ARG_RTOL 1e-5)
  endif()
  get_filename_component(module "${MODULE}" ABSOLUTE)
  set(command "${KILN_EXECUTABLE}" diff "${module}" --bisect "${CMAKE_CURRENT_BINARY_DIR}/kiln_${NAME}")
  _kiln_files(command inputs --input ${ARG_INPUTS})
  _kiln_files(command inputs --config ${ARG_CONFIG})
  foreach(level IN LISTS ARG_LEVELS)
    list(APPEND command "--target=${level}")
  endforeach()
  foreach(option SEED DIM ENTRY ATOL RTOL ULPS)
    if(DEFINED ARG_${option})
      string(TOLOWER "${option}" key)
      list(APPEND command "--${key}=${ARG_${option}}")
    endif()
  endforeach()
  add_test(NAME ${NAME} COMMAND ${command})
  if(CMAKE_C_COMPILER)
    set_tests_properties(${NAME} PROPERTIES ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
  endif()
endfunction()

# kiln_benchmark(NAME LIBRARY [ENTRY NAME]): a program that times a target of kiln_library, or an entry of it, on seeded
# inputs; it takes --json, --runs N and --threads N. The project needs the language C.
function(kiln_benchmark NAME LIBRARY)
  cmake_parse_arguments(ARG "" "ENTRY" "" ${ARGN})
  _kiln_check(kiln_benchmark "${ARG_UNPARSED_ARGUMENTS}")
  set(entry)
  if(DEFINED ARG_ENTRY)
    set(entry --entry "${ARG_ENTRY}")
  endif()
  get_target_property(manifest ${LIBRARY} KILN_MANIFEST)
  set(main "${CMAKE_CURRENT_BINARY_DIR}/${NAME}.c")
  add_custom_command(
    OUTPUT "${main}"
    COMMAND "${KILN_EXECUTABLE}" benchmark "${manifest}" --out "${main}" ${entry}
    DEPENDS ${LIBRARY}_kiln "${manifest}"
    VERBATIM)
  add_executable(${NAME} "${main}")
  set_target_properties(${NAME} PROPERTIES C_STANDARD 11)
  target_link_libraries(${NAME} PRIVATE ${LIBRARY})
endfunction()

# kiln_size_report(NAME LIBRARY...): a target that writes what libraries take, in bytes, to NAME.txt.
function(kiln_size_report NAME)
  _kiln_check(kiln_size_report "")
  set(manifests)
  set(targets)
  foreach(library ${ARGN})
    get_target_property(manifest ${library} KILN_MANIFEST)
    list(APPEND manifests "${manifest}")
    list(APPEND targets ${library}_kiln)
  endforeach()
  set(report "${CMAKE_CURRENT_BINARY_DIR}/${NAME}.txt")
  add_custom_command(
    OUTPUT "${report}"
    COMMAND "${KILN_EXECUTABLE}" sizes ${manifests} --out "${report}"
    DEPENDS ${targets} ${manifests}
    VERBATIM)
  add_custom_target(${NAME} ALL DEPENDS "${report}")
endfunction()

# kiln_shared_object(NAME LIBRARY...): a target that links targets of kiln_library into NAME.so, for programs that load
# models (kiln.h). No linker is needed.
function(kiln_shared_object NAME)
  _kiln_check(kiln_shared_object "")
  set(archives)
  set(targets)
  foreach(library ${ARGN})
    get_target_property(archive ${library} IMPORTED_LOCATION)
    list(APPEND archives "${archive}")
    list(APPEND targets ${library}_kiln)
  endforeach()
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${NAME}.so")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND "${KILN_EXECUTABLE}" link ${archives} --out "${object}"
    DEPENDS ${targets} ${archives} "${KILN_EXECUTABLE}"
    COMMENT "Linking models into ${NAME}.so"
    VERBATIM)
  add_custom_target(${NAME} ALL DEPENDS "${object}")
endfunction()
