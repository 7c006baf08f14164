# An installed folder that runs on another machine of the same kind as it is: the test programs of tools/gpu_check, and
# beside bin/ the shared libraries of this machine but for the C library and what comes with a GPU's driver.
set(bundled tenon tenon_cuda_test tenon_system_test)
set_target_properties(${bundled} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS ${bundled} RUNTIME_DEPENDENCY_SET tenon_libraries RUNTIME DESTINATION bin)
install(RUNTIME_DEPENDENCY_SET tenon_libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\." "^libm\\." "^libdl\\." "^libpthread\\." "^librt\\."
  LIBRARY DESTINATION lib)
install(PROGRAMS tools/gpu_check DESTINATION share/tenon/tools)
install(DIRECTORY tests/golden DESTINATION share/tenon/tests)
install(FILES tests/golden_supported.txt DESTINATION share/tenon/tests)
install(DIRECTORY examples DESTINATION share/tenon)
