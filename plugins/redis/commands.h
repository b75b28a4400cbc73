// The functions of all commands; commands.cc has the table.
#pragma once
#include "redis/redis_api.h"

namespace perhaps::redis {

int bf_advance(Context*, String**, int) noexcept;
int bf_add(Context*, String**, int) noexcept;
int bf_madd(Context*, String**, int) noexcept;
int bf_card(Context*, String**, int) noexcept;
int bf_debug(Context*, String**, int) noexcept;
int bf_exists(Context*, String**, int) noexcept;
int bf_mexists(Context*, String**, int) noexcept;
int bf_info(Context*, String**, int) noexcept;
int bf_insert(Context*, String**, int) noexcept;
int bf_load(Context*, String**, int) noexcept;
int bf_loadchunk(Context*, String**, int) noexcept;
int bf_merge(Context*, String**, int) noexcept;
int bf_reserve(Context*, String**, int) noexcept;
int bf_scandump(Context*, String**, int) noexcept;

int cf_add(Context*, String**, int) noexcept;
int cf_addnx(Context*, String**, int) noexcept;
int cf_compact(Context*, String**, int) noexcept;
int cf_count(Context*, String**, int) noexcept;
int cf_debug(Context*, String**, int) noexcept;
int cf_del(Context*, String**, int) noexcept;
int cf_exists(Context*, String**, int) noexcept;
int cf_mexists(Context*, String**, int) noexcept;
int cf_info(Context*, String**, int) noexcept;
int cf_insert(Context*, String**, int) noexcept;
int cf_insertnx(Context*, String**, int) noexcept;
int cf_loadchunk(Context*, String**, int) noexcept;
int cf_reserve(Context*, String**, int) noexcept;
int cf_scandump(Context*, String**, int) noexcept;

}  // namespace perhaps::redis
