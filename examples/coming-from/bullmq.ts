// Quoted by docs/coming-from/bullmq.md: ranks the tasks of a user ten seconds after the last edit, with every edit.
import { defineEvent, Sluice } from 'sluice'
import { z } from 'zod'

export type RankTasks = (user: string, edited: readonly string[], signal: AbortSignal) => Promise<void>

const taskEdited = defineEvent('task.edited', z.object({ user: z.string(), task: z.string() }))

export function createApp(rankTasks: RankTasks): Sluice {
  const app = new Sluice({ store: 'sqlite:sluice.db' })
  const api = app.limit('tasks-api', { rate: 3, per: '1s' })
  app.flow('rank', {
    on: taskEdited,
    key: (event) => event.data.user,
    debounce: { quiet: '10s', max: '60s' },
    concurrency: 10,
    retry: ['1s', '2s', '4s'],
    run: async ({ key, events, signal }) => {
      const edited = events.map((event) => event.data.task)
      await api.run(() => rankTasks(key, edited, signal))
    },
  })
  return app
}

export async function onTaskEdited(app: Sluice, user: string, task: string): Promise<void> {
  await app.publish(taskEdited({ user, task }))
}
