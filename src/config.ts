/** The environment → Config. The only reader of process.env. */
import { z } from 'zod'

/** A variable that is wrong: the message names it and says what would be right. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

const port = z
  .string()
  .regex(/^\d{1,5}$/)
  .transform(Number)
  .refine((value) => value <= 65_535)

const address = z.url({ protocol: /^https?$/ }).refine((url) => url.endsWith('/v1'))

// No message may show a DATABASE_URL: it holds a password.
const variables = {
  PORT: { schema: port.default(3000), expected: 'a whole number from 0 to 65535' },
  DATABASE_URL: {
    schema: z.string().refine(isDatabaseUrl).default('sqlite:data/petstore.db'),
    expected: 'mysql://user:password@host:3306/database, or sqlite:path, or empty',
  },
  BASE_URL: {
    schema: address.optional(),
    expected: 'an http or https address that ends in /v1',
  },
  STAGING_URL: {
    schema: address.default('https://staging.petstore.example/v1'),
    expected: 'an http or https address that ends in /v1',
  },
} as const

export interface Config {
  port: number
  databaseUrl: string
  baseUrl: string
  stagingUrl: string
}

/** The configuration of an environment. An empty variable counts as unset. Throws ConfigError. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const read = <Name extends keyof typeof variables>(name: Name) => {
    const { schema, expected } = variables[name]
    const result = schema.safeParse(environment[name] || undefined)
    if (!result.success) throw new ConfigError(`${name} must be ${expected}`)
    return result.data as z.output<(typeof variables)[Name]['schema']>
  }
  const port = read('PORT')
  return {
    port,
    databaseUrl: read('DATABASE_URL'),
    baseUrl: read('BASE_URL') ?? `http://localhost:${port}/v1`,
    stagingUrl: read('STAGING_URL'),
  }
}

/** The configuration of this process: its environment and, where there is one, the file `.env`. */
export function loadConfig(): Config {
  try {
    process.loadEnvFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return readConfig(process.env)
}

function isDatabaseUrl(text: string): boolean {
  if (text.startsWith('sqlite:')) return text.length > 'sqlite:'.length
  const url = URL.parse(text)
  return url?.protocol === 'mysql:' && url.hostname !== '' && url.pathname.length > 1
}
