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

# What each kernel takes, read from the machine code: a table for `tenon kernels`, and a build that fails where a
# kernel spills registers (src/backend/cuda/stack_frames.txt has the exceptions).
if(NOT TENON_CUDA_EMULATED)
  find_program(TENON_CUOBJDUMP cuobjdump HINTS ${CUDAToolkit_BIN_DIR})
  if(NOT TENON_CUOBJDUMP)
    message(FATAL_ERROR "cuobjdump of the CUDA toolkit is missing; name one with -DTENON_CUOBJDUMP=PATH (PyPI: nvidia-cuda-cuobjdump)")
  endif()
  set(resources ${CMAKE_BINARY_DIR}/kernel_resources.cc)
  set(frames ${CMAKE_SOURCE_DIR}/src/backend/cuda/stack_frames.txt)
  add_custom_command(OUTPUT ${resources}
    COMMAND ${CMAKE_SOURCE_DIR}/tools/kernel_resources --cuobjdump ${TENON_CUOBJDUMP}
            --library $<TARGET_FILE:tenon_backend_cuda> --allowed ${frames} --out ${resources}
    DEPENDS tenon_backend_cuda ${frames} ${CMAKE_SOURCE_DIR}/tools/kernel_resources VERBATIM)
  add_library(tenon_kernel_resources STATIC ${resources})
  target_include_directories(tenon_kernel_resources PRIVATE ${CMAKE_SOURCE_DIR}/src)
endif()
