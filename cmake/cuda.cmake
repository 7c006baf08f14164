# The GPU backend's language: CUDA, or, emulated for tests without a GPU, the same sources as C++ for the host
# (src/backend/cuda/emulator.h).
file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cuda/*.cu)
if(TENON_CUDA_EMULATED)
  set_source_files_properties(${cuda_sources} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++;-Wno-unknown-pragmas")
  target_compile_definitions(tenon_backend_cuda PUBLIC TENON_CUDA_EMULATED)
else()
  # The libraries that it needs beside the runtime are loaded when a device is opened, so the program starts without.
  find_package(CUDAToolkit 13 REQUIRED)
  target_link_libraries(tenon_backend_cuda PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
  target_include_directories(tenon_backend_cuda PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_options(tenon_backend_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>)
endif()
target_compile_definitions(tenon_backend_cuda INTERFACE TENON_WITH_CUDA)
