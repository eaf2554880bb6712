// libc.h: before all else that is compiled for Linux. From 2.38 on the headers of glibc have programs call names that no
// older glibc and no musl has (__isoc23_strtol, __isoc23_sscanf); the difference is the binary number, which nobody
// reads here.
#ifndef HEAPCAM_LIBC_H
#define HEAPCAM_LIBC_H

#include <features.h>

#undef __GLIBC_USE_C2X_STRTOL // 2.38
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL // 2.40
#define __GLIBC_USE_C23_STRTOL 0

#endif
