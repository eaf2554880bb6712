// jni_md.h: the types that jni.h leaves to the platform, for the probe's DLL: Debian's JDK brings those of Linux alone.
#ifndef HEAPCAM_JNI_MD_H
#define HEAPCAM_JNI_MD_H

#define JNIEXPORT __declspec(dllexport)
#define JNIIMPORT __declspec(dllimport)
#define JNICALL __stdcall

typedef int jint;
typedef long long jlong; // long has 32 bits here
typedef signed char jbyte;

#endif
