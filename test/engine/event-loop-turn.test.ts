// Callers of one turn of the event loop continue together in the next turn, in order, before all later callers.
import { expect, it } from 'vitest'
import { EventLoopTurn } from '../../src/clock.ts'

it('continues with all callers of a turn at once, when the turn is over', async () => {
  const turn = new EventLoopTurn()
  const order: string[] = []
  const first = ['a', 'b', 'c'].map((name) => turn.waitForEnd().then(() => order.push(name)))
  await Promise.resolve()
  expect(order).toEqual([])
  const later = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve))
    order.push('the next turn')
    await turn.waitForEnd()
    order.push('d')
  }
  await Promise.all([...first, later()])
  expect(order).toEqual(['a', 'b', 'c', 'the next turn', 'd'])
})
