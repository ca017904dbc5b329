// The API of the server. Prices, quantities, ids and nanoseconds are text: JavaScript numbers lose digits above 2^53.

export interface Session {
  user: string;
  person: string;
  roles: string[];
  csrf: string;
}

export interface CaseRow {
  id: string;
  state: string;
  disposition: string | null;
  scenario: string;
  key: Record<string, string>;
  session_date: string;
  alerts: number;
  opened: string;
  last_alert: string;
  assignee: string | null;
}

export interface CaseAlert {
  seq: string;
  ts: string;
  trigger_seq: string;
  detail: unknown;
  rule_version: string | null;
  params_hash: string | null;
}

export interface Evidence {
  seq: string;
  position: string | null;
  event: Record<string, unknown> | null;
  missing: string | null;
}

export interface CaseAction {
  number: number;
  ts: string;
  user: string;
  kind: string;
  to: string | null;
  assignee: string | null;
  disposition: string | null;
  text: string | null;
}

export interface ScenarioWords {
  title: string;
  trigger: string;
  clarified: string;
  regulation: string[];
  are_those_of_the_alerts: boolean;
  parameters: { name: string; value: string; unit: string; about: string }[];
}

export interface CaseDetail {
  case: CaseRow;
  scenario: ScenarioWords | null;
  alerts: CaseAlert[];
  evidence: Evidence[];
  actions: CaseAction[];
  allowed: string[];
  dispositions: string[];
  earlier: CaseRow[];
}

export interface PictureColumn {
  ts: string;
  bids: [string, string][];
  asks: [string, string][];
}

export interface PictureOrder {
  oid: string;
  side: string | null;
  owner: string | null;
  trader: string | null;
  steps: { kind: string; seq: string; position: string; ts: string; px?: string; qty?: string }[];
}

export interface Picture {
  instr: string;
  venue: string;
  since: string;
  until: string;
  basis: string | null;
  columns: PictureColumn[];
  best: { ts: string; bid: string | null; ask: string | null }[];
  trades: { seq: string; position: string; ts: string; px: string; qty: string; aggressor: string | null }[];
  orders: PictureOrder[];
  left_out: Record<string, number>;
  lacks_beginning: boolean;
}

export interface DeskStatus {
  cases: Record<string, number>;
  alerts: { note: string | null };
}

/** An answer of the server that is no success. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

let csrf = '';

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = {};
  if (method !== 'GET') headers['x-csrf-token'] = csrf;
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, 'The server does not answer.');
  }
  const text = await response.text();
  if (!response.ok) {
    let message = response.statusText;
    try {
      message = (JSON.parse(text) as { error: string }).error;
    } catch {
      // The status says it.
    }
    throw new Refused(response.status, message);
  }
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

function keep(session: Session): Session {
  csrf = session.csrf;
  return session;
}

export const api = {
  session: async () => keep(await call<Session>('GET', '/session')),
  logIn: async (user: string, password: string) => keep(await call<Session>('POST', '/session', { user, password })),
  logOut: () => call<void>('DELETE', '/session'),
  status: () => call<DeskStatus>('GET', '/status'),
  cases: (query: URLSearchParams) => call<{ cases: CaseRow[]; next: string | null }>('GET', `/cases?${query}`),
  case: (id: string) => call<CaseDetail>('GET', `/cases/${encodeURIComponent(id)}`),
  picture: (id: string) => call<Picture>('GET', `/cases/${encodeURIComponent(id)}/picture`),
  act: (id: string, action: Record<string, string>) =>
    call<CaseDetail>('POST', `/cases/${encodeURIComponent(id)}/actions`, action),
};
