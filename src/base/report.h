/* report.h -- the fields of a report in one table, and what rounds were together. */
#ifndef KF_REPORT_H
#define KF_REPORT_H

#include <kofn.h>

/* Every field of kofn_report, in its order.  The command's --json and manual,
 * options.metrics and the sums of rounds are made of these rows; Python's Report of
 * the struct, so that a field with a row is everywhere.
 *
 *   X(field, adds, kind, key, metric, text)
 *
 *   adds    how it is of several rounds: SUM, MOST, which is the worst, or LAST,
 *           which is of one moment; OWN is in kf_report_add
 *   kind    COUNT; SECONDS, stored as kofn_time; NUMBER; or LIST, for what is kept
 *           for each worker or part and its length, which is told in other ways
 *   key     its name in --json
 *   metric  its name in options.metrics, "": it is not there
 *   text    what it is, for people */
#define KF_REPORT_MAP(X)                                                       \
    X(rounds, SUM, COUNT, "rounds", "", "how often a product was computed")    \
    X(took, SUM, SECONDS, "seconds", "",                                       \
      "of all rounds; clock says whether they are real, modelled or "          \
      "measured")                                                              \
    X(encoding, SUM, SECONDS, "encode_seconds", "kofn_encode_seconds_total",   \
      "spent on encoding")                                                     \
    X(waiting, SUM, SECONDS, "wait_seconds", "kofn_wait_seconds_total",        \
      "spent on waiting")                                                      \
    X(decoding, SUM, SECONDS, "decode_seconds", "kofn_decode_seconds_total",   \
      "spent on decoding and checking")                                        \
    X(noise, MOST, NUMBER, "noise", "kofn_noise_ratio",                        \
      "amplification of rounding by the worst decoding")                       \
    X(predicted, MOST, NUMBER, "predicted_error",                              \
      "kofn_predicted_error_ratio",                                            \
      "the relative error expected from it, of rows of different size in "     \
      "each of them")                                                          \
    X(live, LAST, COUNT, "live", "", "workers at the end")                     \
    X(joined, SUM, COUNT, "joined", "", "workers that came")                   \
    X(left, SUM, COUNT, "left", "", "workers that went")                       \
    X(late, SUM, COUNT, "late", "kofn_results_late_total",                     \
      "results that were not needed, come or not")                             \
    X(dropped, SUM, COUNT, "dropped", "kofn_messages_dropped_total",           \
      "messages that were foreign, stale or came twice")                       \
    X(rows, LAST, LIST, , , )                                                  \
    X(states, LAST, LIST, , , )                                                \
    X(located, LAST, LIST, , , )                                               \
    X(workers, LAST, LIST, , , )                                               \
    X(messages, SUM, COUNT, "messages", "", "results that came")               \
    X(scalars, SUM, COUNT, "scalars_received", "", "numbers in them")          \
    X(corrupt, SUM, COUNT, "corrupt_results", "kofn_results_corrupt_total",    \
      "results that were found wrong")                                         \
    X(liars, OWN, COUNT, "may_lie", "",                                        \
      "so many may lie together and no wrong answer passes; 0: nothing "       \
      "was checked")                                                           \
    X(floor, MOST, NUMBER, "floor", "",                                        \
      "errors below it, relative to |A| |x| of rows of one size, are not "     \
      "looked for")                                                            \
    X(sent, SUM, COUNT, "sent_bytes", "kofn_sent_bytes_total",                 \
      "blocks, and inputs once for each worker and round")                     \
    X(received, SUM, COUNT, "received_bytes", "kofn_received_bytes_total",     \
      "results")                                                               \
    X(weights, LAST, LIST, , , )                                               \
    X(ages, LAST, LIST, , , )                                                  \
    X(parts, LAST, LIST, , , )                                                 \
    X(number, OWN, COUNT, "product", "", "of stream: its number; else 0")      \
    X(began, LAST, COUNT, "began", "",                                         \
      "of stream: the first round of the product")                             \
    X(ended, LAST, COUNT, "ended", "", "of stream: its last round")            \
    X(plain, SUM, COUNT, "plain", "",                                          \
      "of stream: answers that it was made of, as they stood")                 \
    X(coded, SUM, COUNT, "coded", "",                                          \
      "of stream: answers that it was made of, coded ones")                    \
    X(again, SUM, COUNT, "again", "",                                          \
      "of weights that live with the workers: those that were located "        \
      "and asked for their blocks again")                                      \
    X(healed, SUM, COUNT, "healed", "",                                        \
      "workers whose block was wrong, and was made anew")                      \
    X(healing, LAST, COUNT, "healing", "",                                     \
      "workers whose blocks are being made of those of others")                \
    X(drift, MOST, NUMBER, "drift", "",                                        \
      "by how much of their size numbers of blocks were off what the "         \
      "code allows, at the worst comparison")                                  \
    X(unchecked, SUM, COUNT, "unchecked", "",                                  \
      "rounds that were believed and not checked")

/* Adds the rounds of `r` to those of `sum`, field by field as the table says; of
 * `liars` the fewest are kept. */
void kf_report_add(kofn_report *sum, const kofn_report *r);

#endif
