/* report.h -- the fields of a report in one table, and what rounds were together. */
#ifndef KF_REPORT_H
#define KF_REPORT_H

#include <kofn.h>

/* Every field of kofn_report, in its order.
 *
 *   X(field, adds, metric, name, help)
 *
 *   adds    how it is of several rounds: SUM, MOST, which is the worst, or LAST,
 *           which is of one moment; OWN is in kf_report_add
 *   metric  what options.metrics have of it: a counter, a counter of seconds or a
 *           gauge, of this name and with this help; `none` where it is not there */
#define KF_REPORT_MAP(X)                                                       \
    X(rounds, SUM, none, , )                                                   \
    X(took, SUM, none, , )                                                     \
    X(encoding, SUM, seconds, "kofn_encode_seconds_total",                     \
      "Spent on encoding.")                                                    \
    X(waiting, SUM, seconds, "kofn_wait_seconds_total", "Spent on waiting.")   \
    X(decoding, SUM, seconds, "kofn_decode_seconds_total",                     \
      "Spent on decoding and checking.")                                       \
    X(noise, MOST, gauge, "kofn_noise_ratio",                                  \
      "Amplification of rounding by the worst decoding.")                      \
    X(predicted, MOST, gauge, "kofn_predicted_error_ratio",                    \
      "The relative error expected from it.")                                  \
    X(live, LAST, none, , )                                                    \
    X(joined, SUM, none, , )                                                   \
    X(left, SUM, none, , )                                                     \
    X(late, SUM, counter, "kofn_results_late_total",                           \
      "Results that were not needed, come or not.")                            \
    X(dropped, SUM, counter, "kofn_messages_dropped_total",                    \
      "Foreign, stale and duplicate messages.")                                \
    X(rows, LAST, none, , )                                                    \
    X(states, LAST, none, , )                                                  \
    X(located, LAST, none, , )                                                 \
    X(workers, LAST, none, , )                                                 \
    X(messages, SUM, none, , )                                                 \
    X(scalars, SUM, none, , )                                                  \
    X(corrupt, SUM, counter, "kofn_results_corrupt_total",                     \
      "Results that were found wrong.")                                        \
    X(liars, OWN, none, , )                                                    \
    X(floor, MOST, none, , )                                                   \
    X(sent, SUM, counter, "kofn_sent_bytes_total",                             \
      "Blocks and inputs of tasks, as the port was given them.")               \
    X(received, SUM, counter, "kofn_received_bytes_total", "Results.")         \
    X(weights, LAST, none, , )                                                 \
    X(ages, LAST, none, , )                                                    \
    X(parts, LAST, none, , )                                                   \
    X(number, OWN, none, , )                                                   \
    X(began, LAST, none, , )                                                   \
    X(ended, LAST, none, , )                                                   \
    X(plain, SUM, none, , )                                                    \
    X(coded, SUM, none, , )                                                    \
    X(again, SUM, none, , )                                                    \
    X(healed, SUM, none, , )                                                   \
    X(healing, LAST, none, , )                                                 \
    X(drift, MOST, none, , )                                                   \
    X(unchecked, SUM, none, , )

/* Adds the rounds of `r` to those of `sum`, field by field as the table says; of
 * `liars` the fewest are kept. */
void kf_report_add(kofn_report *sum, const kofn_report *r);

#endif
