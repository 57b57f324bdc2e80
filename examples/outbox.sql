-- Quoted by docs/postgres.md: orders and their events in one transaction of any client, both or neither.
begin;
insert into orders (id, customer, total) values (7, 'ada', 4200);
select sluice.publish('order.placed', '{"id": 7, "total": 4200}', subject => 'ada');
commit;

-- Nobody hears of this one.
begin;
insert into orders (id, customer, total) values (8, 'ada', 100);
select sluice.publish('order.placed', '{"id": 8, "total": 100}', subject => 'ada');
rollback;

-- What is undone up to a savepoint takes its events along; the rest is published.
begin;
insert into orders (id, customer, total) values (9, 'bob', 900);
select sluice.publish('order.placed', '{"id": 9, "total": 900}', subject => 'bob');
savepoint gift;
select sluice.publish('order.gift', '{"id": 9}', subject => 'bob');
rollback to gift;
commit;

-- A statement outside a transaction is one by itself: an event for each row that it changes.
with shipped as (
  update orders set shipped = true where not shipped returning id, customer
)
select sluice.publish('order.shipped', jsonb_build_object('id', id), subject => customer) from shipped;
