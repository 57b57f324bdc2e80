// `ENDED_STATUS_SQL` names the states of the view `work`. The SQLite and PostgreSQL stores share it, so both use the
// same words.

/** `ENDED_STATUS_SQL` is for a `case` expression. `d` is the dead letter of the event, `u` the record of the run that ended it. */
export const ENDED_STATUS_SQL: string = `when d.state = 'dead' then 'dead_letter'
      when d.state = 'queued' then 'pending'
      when d.state is not null then d.state
      when u.kind in ('done', 'partial') then 'completed'
      when u.kind = 'dead' then 'dead_letter'
      when u.kind is not null then u.kind`
