// What acts of people have in common: why, and for how long.
import { z } from 'zod'
import type { Duration } from '../../model/duration.ts'

export const reason: z.ZodType<string> = z.string().min(1).max(1_000)

export const duration: z.ZodType<Duration> = z
  .string()
  .regex(/^\d{1,12}(?:\.\d{1,3})?(?:ms|s|m|h|d)$/, "it is a length of time as '250ms', '10s' or '7d'")
  .meta({ description: 'A length of time.', example: '10m' }) as unknown as z.ZodType<Duration>
