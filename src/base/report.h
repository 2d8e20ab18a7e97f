/* report.h -- the fields of a report in one table, and the sum of several
 * reports. */
#ifndef KF_REPORT_H
#define KF_REPORT_H

#include <kofn.h>

/* Every field of kofn_report, in its order.  The command's --json and manual,
 * the metrics and the sums of rounds are made from these rows.  Python's Report
 * is made from the struct.  So a field with a row is everywhere.
 *
 *   X(field, adds, kind, key, metric, text)
 *
 *   adds    how several rounds add up: SUM; MOST, the worst of them; LAST, the
 *           value of the last one; OWN, as kf_report_add does it.
 *   kind    COUNT; SECONDS, stored as kofn_time; NUMBER; or LIST, an array with
 *           a value for each worker or part.  A list is reported elsewhere.
 *   key     name in --json.
 *   metric  name among the metrics; "" if it is none of them.
 *   text    description for users. */
#define KF_REPORT_MAP(X)                                                       \
    X(rounds, SUM, COUNT, "rounds", "", "products that were computed")         \
    X(took, SUM, SECONDS, "seconds", "",                                       \
      "of all rounds; clock says whether they are real, modelled or "          \
      "measured")                                                              \
    X(encoding, SUM, SECONDS, "encode_seconds", "kofn_encode_seconds_total",   \
      "spent on encoding A and inputs")                                        \
    X(waiting, SUM, SECONDS, "wait_seconds", "kofn_wait_seconds_total",        \
      "spent on waiting for answers")                                          \
    X(decoding, SUM, SECONDS, "decode_seconds", "kofn_decode_seconds_total",   \
      "spent on decoding")                                                     \
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
      "results that were not needed, whether they came or not")                \
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
      "faulty workers that may conspire without a wrong answer passing; "      \
      "0: nothing was checked")                                                \
    X(floor, MOST, NUMBER, "floor", "",                                        \
      "errors below it, relative to |A| |x| of rows of one size, cannot "      \
      "be found")                                                              \
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
      "of stream: plain answers that it was decoded from")                     \
    X(coded, SUM, COUNT, "coded", "",                                          \
      "of stream: coded answers that it was decoded from")                     \
    X(again, SUM, COUNT, "again", "",                                          \
      "of weights that the workers keep: workers that were located and "       \
      "sent new blocks")                                                       \
    X(rebuilt, SUM, COUNT, "rebuilt", "",                                      \
      "workers with a wrong block, which was rebuilt")                         \
    X(rebuilding, LAST, COUNT, "rebuilding", "",                               \
      "workers with a block that is being rebuilt from other blocks")          \
    X(drift, MOST, NUMBER, "drift", "",                                        \
      "largest relative distance of a block from the code, at the worst "      \
      "comparison")                                                            \
    X(unchecked, SUM, COUNT, "unchecked", "",                                  \
      "rounds with results that were not checked")                             \
    X(placing, SUM, SECONDS, "place_seconds", "kofn_place_seconds_total",      \
      "spent on waiting for workers that come or store their blocks")          \
    X(sending, SUM, SECONDS, "send_seconds", "kofn_send_seconds_total",        \
      "spent on sending")                                                      \
    X(receiving, SUM, SECONDS, "receive_seconds",                              \
      "kofn_receive_seconds_total", "spent on receiving and deciding")         \
    X(checking, SUM, SECONDS, "check_seconds", "kofn_check_seconds_total",     \
      "spent on checking")                                                     \
    X(outside, SUM, SECONDS, "outside_seconds", "",                            \
      "in which the command did something else, as reading and writing")       \
    X(computed, LAST, LIST, , , )

/* Adds report r to `sum`, field by field as the table says.  `liars` becomes
 * the smaller of the two. */
void kf_report_add(kofn_report *sum, const kofn_report *r);

#endif
