import type { Picture, PictureOrder } from '../api/client';
import { utc } from '../api/time';

export interface Cell {
  name: string;
  x: number;
  y: number;
  width: number;
  height: number;
  isBid: boolean;
  shade: number;
}

const LEFT = 70;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 28;

/** Returns a price in billionths, exactly. */
export function nanos(px: string): bigint {
  const negative = px.startsWith('-');
  const [whole = '0', part = ''] = (negative ? px.slice(1) : px).split('.');
  const value = BigInt(whole) * 1_000_000_000n + BigInt(part.padEnd(9, '0').slice(0, 9));
  return negative ? -value : value;
}

/** Returns billionths as a price. */
export function price(value: bigint): string {
  const negative = value < 0n;
  const size = negative ? -value : value;
  const part = (size % 1_000_000_000n).toString().padStart(9, '0').replace(/0+$/, '');
  return `${negative ? '-' : ''}${size / 1_000_000_000n}${part === '' ? '' : `.${part}`}`;
}

/** Places the times and prices of a picture. */
export class PictureScale {
  private readonly since: bigint;
  private readonly until: bigint;
  private readonly low: bigint;
  private readonly high: bigint;
  private readonly cell: bigint;

  constructor(
    private readonly picture: Picture,
    private readonly width: number,
    private readonly height: number,
  ) {
    this.since = BigInt(picture.since);
    this.until = BigInt(picture.until);
    const near: bigint[] = [];
    for (const step of picture.best) for (const px of [step.bid, step.ask]) if (px !== null) near.push(nanos(px));
    for (const trade of picture.trades) near.push(nanos(trade.px));
    for (const order of picture.orders) for (const step of order.steps) if (step.px) near.push(nanos(step.px));
    for (const column of picture.columns) {
      for (const level of [column.bids[0], column.asks[0]]) if (level) near.push(nanos(level[0]));
    }
    const all = [...new Set(picture.columns.flatMap((c) => [...c.bids, ...c.asks].map(([px]) => nanos(px))))];
    all.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    let cell = 0n;
    for (let n = 1; n < all.length; n += 1) {
      const gap = all[n]! - all[n - 1]!;
      if (cell === 0n || gap < cell) cell = gap;
    }
    this.cell = cell === 0n ? 10_000_000n : cell;
    const low = near.reduce((a, b) => (b < a ? b : a), near[0] ?? 0n);
    const high = near.reduce((a, b) => (b > a ? b : a), near[0] ?? 1_000_000_000n);
    const eighth = (high - low) / 8n;
    const margin = eighth > this.cell * 4n ? eighth : this.cell * 4n;
    this.low = low - margin;
    this.high = high + margin;
  }

  x(ts: string): number {
    let time = BigInt(ts);
    if (time < this.since) time = this.since;
    if (time > this.until) time = this.until;
    const part = Number(time - this.since) / Number(this.until - this.since);
    return round(LEFT + part * (this.width - LEFT - RIGHT));
  }

  y(px: bigint): number {
    const part = Number(px - this.low) / Number(this.high - this.low);
    return round(this.height - BOTTOM - Math.min(1, Math.max(0, part)) * (this.height - TOP - BOTTOM));
  }

  /** Returns the levels as cells; equal levels of columns side by side are one cell. */
  cells(): Cell[] {
    const cells: Cell[] = [];
    const open = new Map<string, { from: string; px: bigint; qty: string; isBid: boolean }>();
    let most = 0;
    for (const column of this.picture.columns) {
      for (const [, qty] of [...column.bids, ...column.asks]) most = Math.max(most, Number(qty));
    }
    const draw = (name: string, to: string) => {
      const { from, px, qty, isBid } = open.get(name)!;
      const [left, right] = [this.x(from), this.x(to)];
      const [top, bottom] = [this.y(px + this.cell / 2n), this.y(px - this.cell / 2n)];
      const share = most > 0 ? Math.log1p(Math.max(Number(qty), 1)) / Math.log1p(most) : 0.5;
      cells.push({
        name: `${name} ${from}`,
        x: left,
        y: top,
        width: round(Math.max(right - left, 0.3)),
        height: round(Math.max(bottom - top, 0.5)),
        isBid,
        shade: round(Math.max(share, 0.1) * 0.75),
      });
      open.delete(name);
    };
    for (const column of this.picture.columns) {
      const now = new Map<string, { px: bigint; qty: string; isBid: boolean }>();
      for (const [side, isBid] of [[column.bids, true], [column.asks, false]] as const) {
        for (const [text, qty] of side) {
          const px = nanos(text);
          if (px >= this.low && px <= this.high) now.set(`${isBid ? 'B' : 'S'} ${text}`, { px, qty, isBid });
        }
      }
      for (const [name, cell] of [...open]) if (now.get(name)?.qty !== cell.qty) draw(name, column.ts);
      for (const [name, cell] of now) if (!open.has(name)) open.set(name, { from: column.ts, ...cell });
    }
    for (const name of [...open.keys()]) draw(name, this.picture.until);
    return cells;
  }

  bestPath(side: 'bid' | 'ask'): string {
    let path = '';
    let isDrawn = false;
    this.picture.best.forEach((step, n) => {
      const px = step[side];
      if (px === null) {
        isDrawn = false;
        return;
      }
      const until = this.picture.best[n + 1]?.ts ?? this.picture.until;
      path += `${isDrawn ? 'L' : 'M'}${this.x(step.ts)} ${this.y(nanos(px))}H${this.x(until)}`;
      isDrawn = true;
    });
    return path;
  }

  /** Returns the price at which the order is before its first step. */
  private firstPrice(order: PictureOrder): bigint | null {
    const step = order.steps.find((step) => step.px !== undefined && step.kind !== 'fill');
    return step?.px === undefined ? null : nanos(step.px);
  }

  orderPath(order: PictureOrder): string {
    let px = this.firstPrice(order);
    const first = order.steps[0];
    if (px === null || first === undefined) return '';
    let path = `M${this.x(first.kind === 'new' ? first.ts : this.picture.since)} ${this.y(px)}`;
    for (const step of order.steps) {
      path += `H${this.x(step.ts)}`;
      if ((step.kind === 'amend' || step.kind === 'new') && step.px !== undefined) {
        px = nanos(step.px);
        path += `V${this.y(px)}`;
      }
    }
    const last = order.steps.at(-1)?.kind;
    return last === 'cancel' || last === 'fill' ? path : `${path}H${this.x(this.picture.until)}`;
  }

  orderMarks(order: PictureOrder): { seq: string; kind: string; shape: string; title: string }[] {
    let px = this.firstPrice(order);
    if (px === null) return [];
    return order.steps.map((step) => {
      if ((step.kind === 'amend' || step.kind === 'new') && step.px !== undefined) px = nanos(step.px);
      const [x, y] = [this.x(step.ts), this.y(px!)];
      const shape =
        step.kind === 'cancel'
          ? `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`
          : step.kind === 'amend'
            ? `M${x} ${y - 4}l4 4l-4 4l-4 -4z`
            : `M${x - 3.5} ${y}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0`;
      const qty = step.qty === undefined ? '' : ` ${step.qty}`;
      const at = step.px === undefined ? '' : ` at ${step.px}`;
      const owner = order.owner === null ? '' : `, ${order.owner}`;
      const title = `order ${order.oid}${owner}: ${step.kind}${qty}${at}, ${utc(step.ts)} UTC, event ${step.seq}`;
      return { seq: step.seq, kind: step.kind, shape, title };
    });
  }

  tradeShape(trade: { ts: string; px: string; aggressor: string | null }): string {
    const [x, y] = [this.x(trade.ts), this.y(nanos(trade.px))];
    if (trade.aggressor === 'B') return `M${x} ${y + 4}l5 8h-10z`;
    if (trade.aggressor === 'S') return `M${x} ${y - 4}l5 -8h-10z`;
    return `M${x - 2.5} ${y - 2.5}h5v5h-5z`;
  }

  prices(): { text: string; y: number }[] {
    const cells = (this.high - this.low) / this.cell / 8n;
    const step = this.cell * (cells > 0n ? cells : 1n);
    const marks: { text: string; y: number }[] = [];
    for (let px = (this.low / step + 1n) * step; px <= this.high; px += step) {
      marks.push({ text: price(px), y: this.y(px) });
    }
    return marks;
  }

  times(): { text: string; x: number; anchor: 'start' | 'middle' | 'end' }[] {
    return [0n, 1n, 2n, 3n, 4n].map((n) => {
      const ts = (this.since + ((this.until - this.since) * n) / 4n).toString();
      const anchor = n === 0n ? 'start' : n === 4n ? 'end' : 'middle';
      return { text: utc(ts, 3).slice(11), x: this.x(ts), anchor };
    });
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
