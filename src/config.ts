/** The environment → Config. The only reader of process.env. */
import { isIP } from 'node:net'
import { z } from 'zod'

/** A variable that is wrong: the message names it and says what would be right. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

const whole = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number)

const port = whole.refine((value) => value <= 65_535)

const list = z.string().transform((text) => text.split(',').map((item) => item.trim()))

const address = z.url({ protocol: /^https?$/ }).refine((url) => /^[^?#]*\/v1$/.test(url))

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
  CORS_ORIGINS: {
    schema: list.pipe(z.array(z.string().refine(isOrigin))).default([]),
    expected: 'origins such as https://shop.example, separated by commas, or *',
  },
  RATE_LIMIT: {
    schema: whole.refine((value) => value > 0).optional(),
    expected: 'a whole number of calls a minute, from 1, or empty for no limit',
  },
  TRUST_PROXY: {
    schema: z.union([whole, list.pipe(z.array(z.string().refine(isNetwork)))]).default(0),
    expected: 'the number of proxies in front, or their addresses or subnets, separated by commas',
  },
} as const

export interface Config {
  port: number
  databaseUrl: string
  baseUrl: string
  stagingUrl: string
  /** Origins whose pages may call the service; `*` among them stands for all. */
  corsOrigins: string[]
  /** Calls a minute per key or address; undefined for no limit. */
  rateLimit: number | undefined
  /** How many proxies in front are believed what they say of the client's address, or which. */
  trustProxy: number | string[]
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
    corsOrigins: read('CORS_ORIGINS'),
    rateLimit: read('RATE_LIMIT'),
    trustProxy: read('TRUST_PROXY'),
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

function isOrigin(text: string): boolean {
  return text === '*' || URL.parse(text)?.origin === text
}

function isNetwork(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', bits = '0', extra] = text.split('/')
  const version = isIP(address)
  return (
    version > 0 &&
    extra === undefined &&
    /^\d{1,3}$/.test(bits) &&
    Number(bits) <= (version === 4 ? 32 : 128)
  )
}
