-- For servers that resolve no names: without this, root is let in through the socket alone.
create user root@'127.0.0.1';
grant all on *.* to root@'127.0.0.1' with grant option;
