/* sentence.h -- one sentence about a run, for the command, the report and the
 * journal. */
#ifndef KF_SENTENCE_H
#define KF_SENTENCE_H

#include "task_outcomes.h"

/* A worker of the run. */
typedef struct kf_sentence_worker {
    bool lost, located, excluded;
    uint64_t results;
    double seconds, size; /* of its results; bytes, or strips */
} kf_sentence_worker;

/* The run. */
typedef struct kf_sentence {
    const kofn_plan *plan;
    bool simulated;
    unsigned rounds, left, joined, wrong;
    double took;            /* seconds of all rounds */
    double calm;            /* seconds before the first worker was lost */
    unsigned calm_rounds;   /* rounds in them */
    bool failed, cut;       /* a round failed, or was open at the end */
    unsigned failed_at, at; /* numbers of rounds */
    kf_sentence_worker *worker;
    size_t workers;
    /* Returns the name of a worker; "" or NULL if it has none.  Valid until the
     * next call. */
    const char *(*name)(const void *ud, size_t worker);
    const void *ud;
} kf_sentence;

/* Writes the sentence, cut to fit. */
void kf_sentence_write(const kf_sentence *s, char *out, size_t room);

/* A run as its moments tell it, for a journal without a last line. */
typedef struct kf_telling {
    const kofn_core *core;
    kf_sentence sum; /* its maker sets `plan` and `simulated` */
    size_t worker_cap;
    char **name; /* by worker; NULL: none */
    size_t names, name_cap;
} kf_telling;

kofn_status kf_telling_see(kf_telling *a, const kf_moment *m);
/* Keeps the name of a worker. */
kofn_status kf_telling_name(kf_telling *a, uint32_t worker, const char *name);
/* Returns it; "" if the worker has none. */
const char *kf_telling_name_of(const kf_telling *a, size_t worker);
/* Writes the sentence. */
void kf_telling_write(kf_telling *a, char *out, size_t room);
void kf_telling_free(kf_telling *a);

#endif
