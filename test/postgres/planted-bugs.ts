// Bugs to plant in the functions with which the server decides plain calls. The simulation must find each of them.
import { APPEND, SETTLE_AND_CLAIM, type ServerFunction } from '../../src/store/postgres/functions.ts'

export interface PlantedBug {
  readonly name: string
  readonly in: ServerFunction
  readonly find: string
  readonly replace: string
}

const inTurn = (name: string, find: string, replace: string): PlantedBug => ({
  name,
  in: SETTLE_AND_CLAIM,
  find,
  replace,
})
const inAppend = (name: string, find: string, replace: string): PlantedBug => ({ name, in: APPEND, find, replace })

export const PLANTED_BUGS: readonly PlantedBug[] = [
  // L1
  inTurn(
    'no fence: any token settles',
    'l.id = e.lane and l.token = e.token and l.lease > v_now and l.waiting = 0',
    'l.id = e.lane and l.lease > v_now and l.waiting = 0',
  ),
  inTurn(
    'a settlement after the lease counts',
    'l.token = e.token and l.lease > v_now and l.waiting = 0',
    'l.token = e.token and l.waiting = 0',
  ),
  inTurn('a request that is repeated counts again', ' and p.request < request_number', ''),
  // L6, L7
  inTurn('events that came during a run are lost', 'l.lease > v_now and l.waiting = 0 and', 'l.lease > v_now and'),
  inTurn('events that came during a run wait for its end only', 'then greatest(o.win, v_now) end', 'then v_now end'),
  inTurn('requeue waits for the window', 'case when e.requeue then v_now when', 'case when'),
  inTurn('the last event of a run stays in its lane', 'p.pos <= e.upto', 'p.pos < e.upto'),
  inTurn('a run takes more than its caps', 'c.waiting <= event_caps[i] and c.bytes', 'c.bytes'),
  // L5, L12, L24
  inTurn(
    'lanes are served in the order of their tickets',
    'order by l.rings, l.ring_ticket limit slots[i]',
    'order by l.ring_ticket limit slots[i]',
  ),
  inTurn('a lane is served before its deadline', 'exit when v_are_early is not true;', 'v_are_early := false; exit;'),
  inTurn('a run that lapsed begins anew', 'c.token is null and c.rest is null', 'c.rest is null'),
  inTurn('failing lanes wait for all healthy ones', 'where a.line > 0) then', 'where a.line > 2) then'),
  inTurn('a paused flow is claimed', 'and not exists (select from pauses p where p.flow = flows[i])', ''),
  inTurn(
    'the next deadline is that of any health',
    'where l.flow = flows[i] and l.line = a.line\n            and',
    'where l.flow = flows[i] and',
  ),
  // L3, L4
  inAppend('a deadline that has passed moves', 'when waiting > 0 and win <= now then win', 'when false then win'),
  inAppend('a window ends without regard to max', 'else least(now + quiet, now + longest, cap)', 'else now + quiet'),
  inAppend('a full window stays open', 'when waiting + events >= max_events', 'when waiting + events > max_events + 1'),
  inAppend(
    'the cap of a window is that of its last event',
    'cap = least(l.cap, v_now + c.longest)',
    'cap = v_now + c.longest',
  ),
  // L6, L6c, L8
  inAppend(
    'an event moves the next attempt',
    'l.pinned or l.token is not null as is_set',
    'l.token is not null as is_set',
  ),
  inAppend('an event moves the end of a lease', 'l.pinned or l.token is not null as is_set', 'l.pinned as is_set'),
  inAppend('no event asks a run to cancel', 'not c.cancels and l.waiting', 'l.waiting'),
  inAppend(
    'the second event of a call has the position of the first',
    'o.tail - o.events + e.nth',
    'o.tail - o.events + 1',
  ),
  // L18
  inAppend('events are stored by old routes', 'if known_routes < v_epoch then', 'if false then'),
]
