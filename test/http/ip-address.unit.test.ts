/** The client's IP address behind proxies, some of which add a port. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { ipAddressOf } from '../../src/http/request.ts'

function addressFrom(forwarded: string | undefined, proxies: string) {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: '127.0.0.1' })
  const req = new IncomingMessage(socket)
  if (forwarded !== undefined) req.headers['x-forwarded-for'] = forwarded
  return ipAddressOf(req, readConfig({ TRUST_PROXY: proxies }).trustProxy)
}

test.for<[string | undefined, string, string]>([
  ['203.0.113.7', '0', '127.0.0.1'],
  [undefined, '1', '127.0.0.1'],
  ['203.0.113.7', '1', '203.0.113.7'],
  ['203.0.113.7:50001', '1', '203.0.113.7'],
  ['2001:db8::7', '1', '2001:db8::7'],
  ['[2001:db8::7]:443', '1', '2001:db8::7'],
  ['[2001:db8::7]', '1', '2001:db8::7'],
  ['198.51.100.1, 203.0.113.7:50001', '1', '203.0.113.7'],
  ['198.51.100.1:1, 203.0.113.7:2', '2', '198.51.100.1'],
  ['198.51.100.1:1, 203.0.113.7:2', '3', '198.51.100.1'],
  ['198.51.100.1:1, 10.0.0.7:2', 'loopback, 10.0.0.0/8', '198.51.100.1'],
  ['198.51.100.1:1, 10.0.0.7:2', 'loopback', '10.0.0.7'],
  ['198.51.100.1, unknown', '1', '127.0.0.1'],
  ['_hidden', '1', '127.0.0.1'],
  ['', '1', '127.0.0.1'],
])('X-Forwarded-For: %s with the trusted proxies %s is %s', ([forwarded, proxies, expected]) => {
  expect(addressFrom(forwarded, proxies)).toBe(expected)
})
