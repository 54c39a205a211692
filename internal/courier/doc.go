// Package courier delivers the messages of the outbox: what calls sent, once they
// were committed.
//
// A message is claimed before it is delivered, by a commit that only one of
// several processes can make, and for a time (its lease). How the attempt ended is
// recorded by a commit that holds only while the claim does. So no two deliver at
// the same time as long as their clocks differ by less than a third of a lease, a
// message whose delivery was recorded is never delivered again, and none is lost
// when a process dies: its message is delivered again once the lease is over. The
// other end may therefore see a message twice, with the same key.
//
// Messages of a package for a host are delivered one after the other, in no order that a sender
// may rely on.
package courier
