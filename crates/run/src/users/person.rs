//! Names of persons: which of them may be given, and when two mean one person.

/// Returns whether two names of persons mean the same person: they differ only in capitals, blanks and invisible
/// characters.
pub fn is_same_person(first: &str, second: &str) -> bool {
    normal_form(first) == normal_form(second)
}

fn normal_form(person: &str) -> String {
    let visible: String = person.chars().filter(|c| c.is_whitespace() || !is_invisible(*c)).collect();
    let words: Vec<&str> = visible.split_whitespace().collect();
    // Upper case first: `ß` is `SS`, and both forms of the small sigma have one capital.
    words.join(" ").to_uppercase().to_lowercase()
}

/// Checks a name that is to be given: fails if it looks like another one.
pub(super) fn check_new_name(field: &str, name: &str) -> Result<(), String> {
    if let Some(c) = name.chars().find(|c| is_invisible(*c)) {
        return Err(format!("`{field}` has the invisible character U+{:04X}; give it without", u32::from(c)));
    }
    if name.trim() != name {
        return Err(format!("`{field}` begins or ends with a blank; give it without"));
    }
    if name.chars().any(|c| c.is_whitespace() && c != ' ') {
        return Err(format!("`{field}` has a blank that is no space; give it with spaces"));
    }
    Ok(())
}

/// Returns whether a character is invisible: control characters, line separators, and characters that Unicode calls
/// format (Cf) or default ignorable.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}'
                | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_blanks_and_what_nobody_sees_make_no_second_person() {
        for name in [
            "Anna Berg",
            "anna  berg",
            "ANNA BERG ",
            "\tAnna\u{a0}Berg",
            "Anna Berg\u{200b}",
            "An\u{ad}na \u{feff}Berg",
            "\u{202e}Anna\u{2028}Berg\u{2064}",
        ] {
            assert!(is_same_person("Anna Berg", name), "{name:?}");
        }
        assert!(is_same_person("Weiß", "WEISS") && is_same_person("ΝΙΚΟΣ", "νικοσ"));
        for name in ["Anna Bergh", "AnnaBerg", "Anna-Berg", "", "Anna"] {
            assert!(!is_same_person("Anna Berg", name), "{name:?}");
        }
    }

    #[test]
    fn a_new_name_shows_all_that_it_has() {
        for name in ["anna", "Anna  Berg", "Ægir Þórðarson", "株式", "O'Neil-Smith"] {
            assert_eq!(check_new_name("person", name), Ok(()), "{name}");
        }
        let hidden =
            [0x200b..=0x200f, 0x202a..=0x202e, 0x2060..=0x2064, 0xfeff..=0xfeff, 0..=0x1f, 0x7f..=0x9f];
        for c in hidden.into_iter().flatten().map(|c| char::from_u32(c).unwrap()) {
            let refused = check_new_name("person", &format!("a{c}b")).unwrap_err();
            assert!(refused.contains(&format!("U+{:04X}", u32::from(c))), "{refused}");
        }
        for name in [" anna", "anna ", "an\u{a0}na", "\u{3000}anna"] {
            assert!(check_new_name("name", name).unwrap_err().contains("blank"), "{name:?}");
        }
    }
}
