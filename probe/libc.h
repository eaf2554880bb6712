// libc.h: before all else that is compiled for Linux. From 2.38 on the headers of glibc have programs call names that
// older glibc and musl do not have (__isoc23_strtol, __isoc23_sscanf). They differ for binary numbers, of which the
// probe reads none.
#ifndef HEAPCAM_LIBC_H
#define HEAPCAM_LIBC_H

#include <features.h>

#undef __GLIBC_USE_C2X_STRTOL // 2.38
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL // 2.40
#define __GLIBC_USE_C23_STRTOL 0

#endif
