// Errors of the CUDA runtime as Status values. For the sources of the device alone.
#pragma once

#include "backend/cuda/cuda_facts.h"

#define RETURN_IF_CUDA_ERROR(call, what, subject)                                 \
  do {                                                                            \
    if (const cudaError_t tenon_status_ = (call); tenon_status_ != cudaSuccess) { \
      return ::tenon::cuda::runtime_error(tenon_status_, what, subject);          \
    }                                                                             \
  } while (false)
