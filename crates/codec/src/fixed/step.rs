//! A compiled record: a step for each column. [`super::plan`] makes and runs them.

/// The reading of one column.
#[derive(Debug, Clone, Copy)]
pub struct ColumnInstruction {
    pub op: ColumnOp,
    pub column_start: u16,
    pub column_end: u16,
    /// Which column's value this is.
    pub column: u16,
    /// Blank is a fault.
    pub is_required: bool,
    /// Whether some values mean "no value".
    pub has_none_values: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum ColumnOp {
    /// Text of one byte.
    Char(u8),
    /// Text with its padding after it.
    Text(u8),
    /// Digits.
    Digits,
    /// Digits; the number says how many of them are after the point.
    Places(i8),
    /// HHMMSS and this number of digits of a second, on the day of this column of the header, in this zone.
    Clock { digits: u8, header: u16, zone: u16 },
    /// As the column's description says.
    Careful,
    /// Nothing.
    Skip,
}
