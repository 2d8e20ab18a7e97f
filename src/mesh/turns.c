/* turns.c -- what follows when blocks were brought to a later turn: they are
 * compared with those of the others, and kept on disk.
 */
#include "host.h"

kofn_status kf_turns_made(kf_host *h, uint64_t was)
{
    if (h->blocks.changing.turn == was)
        return KOFN_OK;
    TRY(kf_sketch_turn(h));
    return kf_keep_turn(h);
}

kofn_status kf_turns_taken(kf_host *h, uint64_t was, bool again)
{
    if (!h->blocks.changes)
        return KOFN_OK;
    if (h->blocks.changing.turn != was)
        TRY(kf_sketch_turn(h));
    TRY(kf_keep_turn(h));
    return again ? kf_sketch_begin(h) : KOFN_OK;
}
