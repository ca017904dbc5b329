//! The command line, as a user calls it: each module runs the binary, and looks at files, output and exit codes.
//!
//! The modules are one binary: fifty cost half of the seconds that a build after a small change takes.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod bench;
mod book;
mod calendar;
mod consolidate;
mod csv;
mod damage;
mod damage_read;
mod demo;
mod empty;
mod evidence;
mod exit_codes;
mod fast;
mod fix;
mod fix_large;
mod fix_numbers;
mod fix_orders;
mod fixed;
mod forged;
mod formats_agree;
mod fx;
mod generate;
mod generate_banks;
mod golden;
mod handler;
mod hot;
mod iso20022;
mod itch;
mod kill;
mod lineage;
mod lineage_damage;
mod lines;
mod mapping;
mod mapping_mistakes;
mod merge;
mod model;
mod nbbo;
mod output;
mod payment_stages;
mod picture;
mod places;
mod quarantine;
mod quarantine_raw;
mod reference;
mod refused;
mod repair;
mod rows;
mod same_tape;
mod sources;
mod stale;
mod store;
mod store_kill;
mod swift;
mod tape;
mod taq;
mod text;
mod times;
mod watch;
mod watch_planted;
mod watch_run;
