// version.h: the version of this build; make gives it.
#ifndef HEAPCAM_VERSION_H
#define HEAPCAM_VERSION_H

#ifndef HC_PROBE_VERSION
#define HC_PROBE_VERSION "0.1.0-dev"
#endif

#endif
