/*
 * heapcam_abi.h: what probe and agent agree on, as numbers.
 *
 * Two contracts stand here: the stream of blocks and events (docs/format/stream.md; Go: package trace) and the header
 * of the shared ring (docs/format/shared-ring.md; Go: package shmring). The Go test trace/abi_test.go reads the
 * #defines of this file and compares each with the Go table, so a number changed on one side alone fails the build's
 * tests. Only plain integer, shift and string constants therefore: no expression that needs a compiler.
 *
 * All integers in memory are little-endian. Addresses in the stream are words of 8 bytes from the heap base; times are
 * nanoseconds of CLOCK_MONOTONIC since the probe started.
 */
#ifndef HEAPCAM_ABI_H
#define HEAPCAM_ABI_H

/* ---- versions ---------------------------------------------------------------------------------------------------- */

#define HC_ABI_VERSION 2            /* shared ring header; a reader refuses a later one */
#define HC_FORMAT_VERSION 1         /* version byte of a probe's blocks, but for the next; the agent's META: 2 */
#define HC_FORMAT_SLICES 3          /* of SLICE, and of EPOCH with events of version 3 */
#define HC_FORMAT_CONCURRENT 3      /* the same of a collector whose objects have no address */
#define HC_FORMAT_REFS 4            /* of REFS */
#define HC_FORMAT_REFSAMPLES 11     /* of REFS with HC_EV_REFSAMPLES */
#define HC_FORMAT_RESOURCE 5        /* of META with process or resource */
#define HC_FORMAT_SITED 8           /* of EPOCH with sited */
#define HC_FORMAT_LISTED_SITES 12   /* of SYNC and SLICE with sited */
#define HC_FORMAT_USES 9            /* of EPOCH with uses */
#define HC_FORMAT_CANDIDATES 6      /* of DEFS with candidate or scanned */

/* ---- block ------------------------------------------------------------------------------------------------------- */
/*
 *  byte 0        1          2       4             8                      16
 *  +--------+----------+--------+-------------+----------------------+---------------------+ pad to 8
 *  | kind u8| version u8| flags u16| length u32 |       seq u64        |  payload (length B) |
 *  +--------+----------+--------+-------------+----------------------+---------------------+
 */
#define HC_BLOCK_HEADER_SIZE 16
#define HC_BLOCK_ALIGN 8
#define HC_BLOCK_OFF_KIND 0
#define HC_BLOCK_OFF_VERSION 1
#define HC_BLOCK_OFF_FLAGS 2
#define HC_BLOCK_OFF_LENGTH 4
#define HC_BLOCK_OFF_SEQ 8
#define HC_BF_PARTIAL 1             /* reserved */

#define HC_KIND_META 1
#define HC_KIND_DEFS 2
#define HC_KIND_SAMPLES 3
#define HC_KIND_EPOCH 4
#define HC_KIND_SYNC 5
#define HC_KIND_GAP 6
#define HC_KIND_END 7
#define HC_KIND_SUMMARY 8           /* the agent's; no probe sends it */
#define HC_KIND_LAYOUT 9            /* reserved */
#define HC_KIND_REFS 10             /* one part of a reference listing */
#define HC_KIND_SLICE 11

/* ---- events: one tag byte, then the fields of that row in docs/format/stream.md ---------------------------------- */

#define HC_EV_JVM 1
#define HC_EV_NOTE 2
#define HC_EV_SAMPLING 3            /* this one to HC_EV_EXHAUSTED: the agent's, in blocks of version 2 */
#define HC_EV_SITESCUT 4
#define HC_EV_UNLISTED 5
#define HC_EV_STORM 6
#define HC_EV_EXHAUSTED 7
#define HC_EV_RESOURCE 21           /* in a block of version 5: the agent's, and the probe's from the process context */
#define HC_EV_TYPE 8
#define HC_EV_LOADER 9
#define HC_EV_METHOD 10
#define HC_EV_FRAME 11
#define HC_EV_THREAD 12
#define HC_EV_TYPEGONE 13
#define HC_EV_LOADERGONE 14
#define HC_EV_CANDIDATE 15          /* this one and HC_EV_SCANNED: in DEFS of version 6 */
#define HC_EV_SCANNED 19
#define HC_EV_SAMPLEBASE 16
#define HC_EV_SAMPLE 17
#define HC_EV_WATCHED 18
#define HC_EV_PROCESS 20            /* the agent's, in blocks of version 5 */
#define HC_EV_PAUSE 24
#define HC_EV_SPACE 25
#define HC_EV_REGIONS 26
#define HC_EV_ALLOCS 27
#define HC_EV_MOVES 28
#define HC_EV_BIRTHS 29
#define HC_EV_FREED 30
#define HC_EV_RESOLVED 31
#define HC_EV_SAMPLEDEAD 32
#define HC_EV_CENSUS 33
#define HC_EV_LOST 34               /* this one to HC_EV_UNCOUNTED: in blocks of version 3 */
#define HC_EV_CLEARED 35
#define HC_EV_UNKNOWN 36
#define HC_EV_UNCOUNTED 37
#define HC_EV_CYCLE 38
#define HC_EV_STOPS 39
#define HC_EV_SYNCPOINT 40
#define HC_EV_LIST 41
#define HC_EV_LIVESAMPLES 42
#define HC_EV_TOTAL 43
#define HC_EV_SLICE 44
#define HC_EV_PENDING 45
#define HC_EV_LISTED 46
#define HC_EV_AGAIN 47
#define HC_EV_GAP 48
#define HC_EV_END 49
#define HC_EV_SAMPLETYPES 50
#define HC_EV_SURVIVED 51
#define HC_EV_UNWATCHED 52
#define HC_EV_WATCHING 53
#define HC_EV_SITED 54              /* in EPOCH of version 8 */
#define HC_EV_USES 55               /* this one and HC_EV_USESCOPE: in EPOCH of version 9 */
#define HC_EV_USESCOPE 22
#define HC_EV_COVERED 56
#define HC_EV_COLLECTION 57
#define HC_EV_TYPESUM 58
#define HC_EV_SITESUM 59
#define HC_EV_REFPART 60            /* this one to HC_EV_REFSLOTS: in REFS, version 4 */
#define HC_EV_REFERENCES 61
#define HC_EV_REFCLASS 62
#define HC_EV_REFFIELD 63
#define HC_EV_REFEXTRA 64
#define HC_EV_REFROOTS 65
#define HC_EV_REFLIST 66
#define HC_EV_REFSLOTS 67
#define HC_EV_REFSAMPLES 69         /* in REFS of version 11 */

/* ---- values of fields -------------------------------------------------------------------------------------------- */

/* jvm.collector */
#define HC_COLLECTOR_SERIAL 1
#define HC_COLLECTOR_PARALLEL 2
#define HC_COLLECTOR_G1 3
#define HC_COLLECTOR_ZGC 4
#define HC_COLLECTOR_SHENANDOAH 5
#define HC_COLLECTOR_EPSILON 6

/* jvm.flags */
#define HC_JF_COMPRESSED_OOPS 1
#define HC_JF_COMPRESSED_CLASS 2
#define HC_JF_COMPACT_HEADERS 4
#define HC_JF_AT_START 8            /* loaded at start: the tape begins with the JVM */
#define HC_JF_NO_SAMPLING 16        /* sampling unavailable */

/* jvm.depth, pause.depth, ring depth_now and depth_wanted */
#define HC_DEPTH_SAMPLES 1
#define HC_DEPTH_SURVIVORS 2
#define HC_DEPTH_FULL 3

/* type.flags */
#define HC_TF_ARRAY 1
#define HC_TF_VARIABLE 2            /* variable size: java.lang.Class */
#define HC_TF_FILLER 4
#define HC_TF_HIDDEN 8
#define HC_TF_OBJARRAY 16

/* method.flags */
#define HC_MF_NATIVE 1
#define HC_MF_HIDDEN 2              /* method of a hidden class */

/* candidate.flags: of the class */
#define HC_MADE_CLONEABLE 1
#define HC_MADE_THROWABLE 2
/* uses.flags */
#define HC_USE_BLIND 1              /* the number was not in the header at this pause: uses may have been missed */

/* frame.bci of a native frame (zigzag signed) */
#define HC_BCI_NATIVE (-1)

/* thread.flags */
#define HC_THREAD_VIRTUAL 1         /* all virtual threads share one entry */

/* pause.kind */
#define HC_PAUSE_YOUNG 1
#define HC_PAUSE_MIXED 2
#define HC_PAUSE_FULL 3
#define HC_PAUSE_REMARK 4
#define HC_PAUSE_CLEANUP 5
#define HC_PAUSE_WALK 6             /* emergency stop without collection */
#define HC_PAUSE_UNKNOWN 7
#define HC_PAUSE_MINOR 8            /* a concurrent cycle over the young generation */
#define HC_PAUSE_MAJOR 9            /* a concurrent cycle over the whole heap */
#define HC_PAUSE_READING 10         /* no cycle: counters and watched samples were read */

/* pause.flags */
#define HC_PF_EXACT 1               /* moves and deaths in this block are complete */
#define HC_PF_SYNC_FOLLOWS 2
#define HC_PF_EVAC_FAILED 4
#define HC_PF_MISSED 8              /* a collection without events came before */
#define HC_PF_FAULT 16              /* a check or the guard fired: the moves and deaths of this epoch were dropped */
#define HC_PF_EDEN_KEPT 32          /* eden was not collected in this pause */
#define HC_PF_LEFT_OUT 64           /* a storm: a listing was due, and no object is recorded until there is one */
/* from this bit on: how many collections without events came before; 0 with HC_PF_MISSED: not known */
#define HC_PF_MISSED_SHIFT 16
#define HC_PF_MISSED_MAX 65535

/* cycle.flags */
#define HC_CF_OPEN 1                /* its end was not seen */

/* space.kind, regions */
#define HC_SPACE_FREE 0
#define HC_SPACE_EDEN 1
#define HC_SPACE_SURVIVOR 2
#define HC_SPACE_OLD 3
#define HC_SPACE_HUMONGOUS 4
#define HC_SPACE_HUMONGOUS_CONT 5
#define HC_SPACE_ARCHIVE 6
#define HC_SPACE_HEAP 7             /* all of a heap whose parts are not known */

/* syncpoint.reason */
#define HC_SYNC_FIRST 1
#define HC_SYNC_ROTATION 2
#define HC_SYNC_FULL 3
#define HC_SYNC_EVAC_FAILED 4
#define HC_SYNC_MISSED 5
#define HC_SYNC_FAULT 6
#define HC_SYNC_LOST 7
#define HC_SYNC_RECONNECT 8
#define HC_SYNC_WALK 9
#define HC_SYNC_GC 10
#define HC_SYNC_DEPTH 11

/* syncpoint.flags */
#define HC_SF_EDEN 1                /* eden listed */
#define HC_SF_FIRST 2               /* first of the session */
#define HC_SF_UNCOMPACTED 4         /* dead objects of regions that G1 did not compact may be listed */

/* slice.flags */
#define HC_SLICE_FIRST 1            /* reading can start here */
#define HC_SLICE_LAST 2             /* the state is complete */
#define HC_SLICE_UNCOMPACTED 4      /* as HC_SF_UNCOMPACTED */

/* refpart.flags */
#define HC_RP_FIRST 1
#define HC_RP_LAST 2

/* refclass.kind */
#define HC_RC_INSTANCE 0
#define HC_RC_OBJARRAY 1
#define HC_RC_ARRAY 2
#define HC_RC_MIRROR 3
#define HC_RC_REFERENCE 4
#define HC_RC_CHUNK 6               /* a virtual thread's stack */
#define HC_RC_FILLER 7

/* reffield.strength */
#define HC_RS_STRONG 0
#define HC_RS_SOFT 1
#define HC_RS_FINAL 2
#define HC_RS_WEAK 3
#define HC_RS_PHANTOM 4

/* reffield.flags */
#define HC_RF_STATIC 1

/* refextra.kind */
#define HC_RE_DEFINES 1             /* from a class loader to the mirror of its class */
#define HC_RE_RESOLVED 2            /* from a mirror to the array of what the class's constants have resolved to */

/* refroots.kind */
#define HC_RR_OTHER 0
#define HC_RR_JNI_GLOBAL 1
#define HC_RR_JNI_LOCAL 2
#define HC_RR_STACK 3
#define HC_RR_SYSTEM_CLASS 4
#define HC_RR_MONITOR 5
#define HC_RR_THREAD 6
#define HC_RR_LOADER 7              /* the mirror of a class that is never unloaded */

/* census rows: bits of the mask, and buckets of age (collections survived) */
#define HC_CENSUS_BORN_YOUNG 1
#define HC_CENSUS_BORN_OLD 2
#define HC_CENSUS_PROMOTED 4
#define HC_CENSUS_DIED_YOUNG 8
#define HC_CENSUS_DIED_OLD 16
#define HC_BUCKET_0 0
#define HC_BUCKET_1 1
#define HC_BUCKET_2_3 2
#define HC_BUCKET_4_7 3
#define HC_BUCKET_8_15 4
#define HC_BUCKET_OLD 5

/* gap.reason */
#define HC_GAP_OVERFLOW 1
#define HC_GAP_VIOLATION 2
#define HC_GAP_AWAY 3
#define HC_GAP_STORE 4
#define HC_GAP_SAMPLES 5

/* end.reason */
#define HC_END_DEATH 1
#define HC_END_DETACHED 2
#define HC_END_GAVE_UP 3

/* what Agent_OnAttach returns; 0: recording */
#define HC_LOAD_TWICE 1   /* this copy of the library records the JVM already, or is about to end a recording */
#define HC_LOAD_OPTIONS 2
#define HC_LOAD_JVMTI 3
#define HC_LOAD_REFUSED 4
/* of probes before ABI 2: this copy has recorded the JVM and cannot record it again; another copy of the file can */
#define HC_LOAD_ENDED 5

/* ---- walk tokens: one LEB128, low three bits the form, the rest v ------------------------------------------------ */

#define HC_TOK_BITS 3
#define HC_TOK_DEAD 0
#define HC_TOK_MOVE 1               /* survives at an explicit destination */
#define HC_TOK_LANE0 2              /* survives where lane 0 goes on; 3, 4, 5: lanes 1, 2, 3 */
#define HC_TOK_SKIP 6
#define HC_TOK_END 7
#define HC_LANES 4

/* list tokens */
#define HC_LIST_END 0
#define HC_LIST_SKIP 1
#define HC_LIST_TYPE 2              /* token of the object of type t is t - 1 + HC_LIST_TYPE */

/* ---- limits: a reader refuses what is beyond, so a writer must stay within --------------------------------------- */

#define HC_MAX_BLOCK (1 << 30)      /* bytes of a block's payload */
#define HC_MAX_STR (1 << 20)        /* bytes of a string */
#define HC_MAX_TYPE_ID ((1 << 28) - 1)
#define HC_MAX_ADDR (1LL << 45)     /* words: 256 TiB */
#define HC_MAX_OBJECT (1LL << 40)   /* words of one object */
#define HC_MAX_LOG2 3               /* array element: at most 8 bytes */
#define HC_MAX_INSTANCE (1 << 24)   /* bytes of an instance, or of an array's header */
#define HC_MAX_ALIGN 256            /* bytes: ObjectAlignmentInBytes */
#define HC_MAX_LINES 65536          /* rows of a method's line table */
/* samples, resolved samples, freed ranges, census rows, regions: of each kind in one block */
#define HC_MAX_RECORDS (1 << 22)
#define HC_MAX_RANGES (1 << 17)     /* pending, listed, cleared and unknown ranges: of each kind in one block */

/* ---- shared ring ------------------------------------------------------------------------------------------------- */

/*
 * Memory order. Probe and agent share no lock, and on arm64 a processor may see the accesses of another one in another
 * order. What each does to the file:
 *
 *   VM thread in a pause    through its mapping: data by plain stores; words by loads that acquire, stores that release
 *   the probe's others      os_ring_read, os_ring_write: a copy by the kernel, an acquire fence behind or a release
 *                           fence before it
 *   agent                   pread, pwrite: a copy by the kernel, shmring.fence (DMB ISH) behind or before it
 *
 * Entering and leaving the kernel is no fence, so these are needed; that a thread goes on on another processor is one.
 * A copy takes its bytes in any order: what must be seen in order is read or written by two. No kernel promises that
 * it copies an aligned word by one access, though they do: so the agent reads head until two reads agree.
 * A torn word is checked like a false one: positions against capacity and each other, the rest by their range.
 * No order is needed between a store and a later load of another word (two agents exclude each other by flock, two
 * writers by a lock), so nothing needs to be sequentially consistent. Word by word:
 *
 *   head        Stored (release) after the last byte; the agent loads it (acquire) before it copies data. So what it
 *               copies is whole. One writer at a time, by the lock `writer` (acquire, release): data that another
 *               thread of the probe committed before is older than the lock's release, thus than this head.
 *   tail        The agent stores it (release) after its copy of the data; the probe loads it (acquire) before it
 *               writes there. So nothing is written over that has not been read.
 *   state       Stored (release) after head, reason and the counters. The agent loads it (acquire) before head, and
 *               copies the header again after a state that is the last. So an end has all that was committed.
 *   magic       Stored (release) after the rest of the header; the agent loads it (acquire) before that. base,
 *               capacity, session and so on never change afterwards.
 *   emergency   The agent stores emergency_method first, each by a release; the probe loads the counter (acquire)
 *               before the method, and its own copy of the two keeps that order.
 *   *_done      Stored (release) after head of the blocks that answer. Another thread of the probe may carry the word
 *               from the probe's own copy to the file: it stores what it has loaded, and arm64 keeps such a pair in
 *               order for everybody (multi-copy atomicity).
 *   the rest    Heartbeats, depths, interval, pause, detach, redefine, sync_wanted, limits, sums: each stands alone,
 *               and a late value is an earlier one.
 *
 * probe/testdata/litmus has each pair as a litmus test of Arm's model (go test ./probe -run TestLitmus, with herd7).
 */
#define HC_RING_MAGIC "HEAPCAMR"
/* a multiple of every page size in use: the data behind it can be mapped by itself. ABI 1: 4096 */
#define HC_RING_HEADER_SIZE 65536
#define HC_RING_HEADER_USED 4096    /* of them; what lies behind may be a hole */
#define HC_RING_MIN_CAPACITY (1 << 20)
#define HC_RING_MAX_CAPACITY (1 << 30)
#define HC_RING_AGENT_STALE_NS 5000000000LL /* agent_heartbeat older than this: nobody reads */

#define HC_RING_OFF_MAGIC 0
#define HC_RING_OFF_ABI 8
#define HC_RING_OFF_HEADER_SIZE 12
#define HC_RING_OFF_CAPACITY 16
#define HC_RING_OFF_PID 24
#define HC_RING_OFF_FLAGS 28
#define HC_RING_OFF_START_TICKS 32
#define HC_RING_OFF_PIDNS 40
#define HC_RING_OFF_SESSION 48
#define HC_RING_OFF_PROBE_VERSION 80
#define HC_RING_OFF_HEAD 128
#define HC_RING_OFF_STATE 136
#define HC_RING_OFF_DEPTH_NOW 140
#define HC_RING_OFF_HEARTBEAT 144
#define HC_RING_OFF_EPOCHS 152
#define HC_RING_OFF_EPOCHS_DROPPED 160
#define HC_RING_OFF_EPOCHS_FAILED 168
#define HC_RING_OFF_SAMPLES 176
#define HC_RING_OFF_SAMPLES_DROPPED 184
#define HC_RING_OFF_SYNC_DONE 192
#define HC_RING_OFF_EMERGENCY_DONE 200
#define HC_RING_OFF_REDEFINE_DONE 208
#define HC_RING_OFF_PROBE_NS 216
#define HC_RING_OFF_PAUSE_NS 224
#define HC_RING_OFF_LAST_SYNC_BYTES 232
#define HC_RING_OFF_LIVE_BYTES 240
#define HC_RING_OFF_SAMPLE_NS 248
#define HC_RING_OFF_TAIL 256
#define HC_RING_OFF_AGENT_HEARTBEAT 264
#define HC_RING_OFF_AGENT_GENERATION 272
#define HC_RING_OFF_SLICES 280
#define HC_RING_OFF_REFERENCES 288  /* low half: counter; high half: ms that the stop may take */
#define HC_RING_OFF_SYNC_WANTED 320
#define HC_RING_OFF_EMERGENCY 328
#define HC_RING_OFF_EMERGENCY_METHOD 336
#define HC_RING_OFF_DEPTH_WANTED 340
#define HC_RING_OFF_INTERVAL_WANTED 344
#define HC_RING_OFF_PAUSE 352
#define HC_RING_OFF_DETACH 356
#define HC_RING_OFF_REDEFINE 360
#define HC_RING_OFF_EPOCH_MAX 368
#define HC_RING_OFF_COST_MAX 376
#define HC_RING_OFF_EXHAUSTED 384
#define HC_RING_OFF_SITES_CUT 392
#define HC_RING_OFF_SITES_FOLDED 400
#define HC_RING_OFF_REFERENCES_DONE 408
#define HC_RING_OFF_REFERENCES_STATE 416
#define HC_RING_OFF_REFERENCES_TORN 424
#define HC_RING_OFF_CLASSES_LEFT 432
#define HC_RING_OFF_HELPERS_NS 440
#define HC_RING_OFF_SYNC_PREDICTED 448
#define HC_RING_OFF_SYNC_TOO_LONG 456
#define HC_RING_OFF_EPOCHS_CUT 464
#define HC_RING_OFF_BASE 472
#define HC_RING_OFF_STORM 480
#define HC_RING_OFF_WALK_SURVIVORS 488
#define HC_RING_OFF_WALK_FULL 496
#define HC_RING_OFF_REASON 512
#define HC_RING_OFF_JVM 1024
#define HC_RING_OFF_NAME 1536

/* widths of the texts in the header, terminating NUL included where the format says so */
#define HC_RING_LEN_SESSION 32      /* hex, no NUL */
#define HC_RING_LEN_PROBE_VERSION 48
#define HC_RING_LEN_REASON 512
#define HC_RING_LEN_JVM 512
#define HC_RING_LEN_NAME 128

/* ring flags */
#define HC_RING_DISK 1
#define HC_RING_MEMFD 2

/* ring state */
#define HC_STATE_STARTING 0
#define HC_STATE_RECORDING 1
#define HC_STATE_PAUSED 2
#define HC_STATE_REFUSED 3
#define HC_STATE_DETACHED 4
#define HC_STATE_GOODBYE 5
#define HC_STATE_GAVE_UP 6
#define HC_STATE_MOVED 7            /* a larger ring goes on where this one ends */

/* emergency_method */
#define HC_EMERGENCY_WALK 1
#define HC_EMERGENCY_GC 2
#define HC_EMERGENCY_ORACLE 3       /* test mode only */

/* references_state; 0: the probe is older than reference listings */
#define HC_REFERENCES_IDLE 1
#define HC_REFERENCES_TAKING 2
#define HC_REFERENCES_SENDING 3

#endif /* HEAPCAM_ABI_H */
