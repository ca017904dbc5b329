//! The pages do what they say: their commands, their examples and the readers in Python.

#[path = "../common/mod.rs"]
mod common;

mod commands;
mod jobs;
mod messaging;
mod pages;
mod python_books;
mod python_reader;
mod scenario_pages;
