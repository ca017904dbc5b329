//! The slow twin: the encoding of values in bytes.

use super::{Bits, Pass, Wrong, bounded_exponent};
use crate::fault::MessageFaultCode;
use crate::template::{InitialValue, WireType};

impl Pass<'_> {
    /// Reads the bytes up to the byte with the stop bit.
    fn entity(&mut self) -> Result<Vec<u8>, Wrong> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let stop = rest.iter().position(|b| b & 0x80 != 0).ok_or((MessageFaultCode::Truncated, start))?;
        self.at += stop + 1;
        Ok(rest[..=stop].iter().map(|b| b & 0x7f).collect())
    }

    pub(super) fn presence_map(&mut self) -> Result<Bits, Wrong> {
        let at = self.at;
        let groups = self.entity()?;
        if self.decoder.strict && groups.len() > 1 && groups.last() == Some(&0) {
            return Err((MessageFaultCode::R7, at));
        }
        let bits = groups.iter().flat_map(|group| (0..7).map(move |n| group >> (6 - n) & 1 == 1)).collect();
        Ok(Bits { bits, next: 0, at })
    }

    /// Reads an integer of any size that fits into ten bytes.
    fn integer(&mut self, signed: bool, nullable: bool) -> Result<Option<i128>, Wrong> {
        let start = self.at;
        let groups = self.entity()?;
        let overlong = |groups: &[u8]| match groups {
            [0, next, ..] => !signed || next & 0x40 == 0,
            [0x7f, next, ..] => signed && next & 0x40 != 0,
            _ => false,
        };
        if self.decoder.strict && overlong(&groups) {
            return Err((MessageFaultCode::R6, start));
        }
        let mut groups = &groups[..];
        while overlong(groups) {
            groups = &groups[1..];
        }
        if groups.len() > 10 {
            return Err((MessageFaultCode::D2, start));
        }
        let negative = signed && groups[0] & 0x40 != 0;
        let value = groups
            .iter()
            .fold(if negative { -1 } else { 0 }, |value: i128, group| value << 7 | i128::from(*group));
        Ok(match (nullable, value) {
            (true, 0) => None,
            (true, 1..) => Some(value - 1),
            _ => Some(value),
        })
    }

    /// Reads a difference. Reports `beyond` for a difference that no value can take.
    pub(super) fn difference(
        &mut self,
        nullable: bool,
        beyond: MessageFaultCode,
    ) -> Result<Option<i128>, Wrong> {
        self.integer(true, nullable)
            .map_err(|(code, at)| (if code == MessageFaultCode::D2 { beyond } else { code }, at))
    }

    /// Reads an integer of this type.
    pub(super) fn int(&mut self, kind: WireType, nullable: bool) -> Result<Option<i128>, Wrong> {
        let start = self.at;
        let (least, most) = kind.bounds().expect("an integer");
        let value = self.integer(least < 0, nullable)?;
        match value {
            Some(value) if !(least..=most).contains(&value) => Err((MessageFaultCode::D2, start)),
            value => Ok(value),
        }
    }

    pub(super) fn read(&mut self, kind: WireType, nullable: bool) -> Result<Option<InitialValue>, Wrong> {
        let start = self.at;
        match kind {
            WireType::Int32 | WireType::UInt32 | WireType::Int64 | WireType::UInt64 => {
                Ok(self.int(kind, nullable)?.map(InitialValue::Int))
            }
            WireType::Decimal => {
                let Some(exponent) = self.int(WireType::Int32, nullable)? else { return Ok(None) };
                let exponent = bounded_exponent(exponent).ok_or((MessageFaultCode::R1, start))?;
                let mantissa = self.int(WireType::Int64, false)?.expect("mandatory");
                Ok(Some(InitialValue::Decimal {
                    mantissa: i64::try_from(mantissa).expect("in bounds"),
                    exponent,
                }))
            }
            WireType::Ascii => self.ascii(nullable),
            WireType::Unicode | WireType::Bytes => {
                let Some(length) = self.int(WireType::UInt32, nullable)? else { return Ok(None) };
                let from = self.at;
                let end = from + usize::try_from(length).expect("in bounds");
                let bytes = self.bytes.get(from..end).ok_or((MessageFaultCode::Truncated, start))?;
                self.at = end;
                Ok(Some(InitialValue::Bytes(bytes.to_vec())))
            }
        }
    }

    /// Reads a string. Leading zeros mark values without another encoding: one zero marks an empty string (or an absent
    /// string, if the field is optional). One more zero marks a string that begins with a zero; an optional field needs
    /// yet one more.
    fn ascii(&mut self, nullable: bool) -> Result<Option<InitialValue>, Wrong> {
        let start = self.at;
        let characters = self.entity()?;
        let value = match (nullable, &characters[..]) {
            (true, [0]) => return Ok(None),
            (true, [0, 0, rest @ ..]) | (_, [0, rest @ ..]) => {
                if self.decoder.strict && rest.first().is_some_and(|first| *first != 0) {
                    return Err((MessageFaultCode::R9, start));
                }
                rest
            }
            (_, all) => all,
        };
        Ok(Some(InitialValue::Bytes(value.to_vec())))
    }
}
